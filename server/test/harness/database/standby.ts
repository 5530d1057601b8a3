import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import type { EngineConnection } from '../../../src/platform/engine/presence.ts'
import { type EngineFolder, query } from './engine.ts'
import { eventually } from '../timing/eventually.ts'

/**
 * Makes every commit wait for a standby of this name, which need not exist. An empty name ends the wait.
 * The setting affects the whole cluster, so use a separate engine.
 */
export async function waitForStandby(connection: EngineConnection, name: string): Promise<void> {
  await query(connection, `alter system set synchronous_standby_names = '${name}'`)
  await query(connection, 'select pg_reload_conf()')
  await eventually(async () => {
    const [row] = await query(connection, 'show synchronous_standby_names')
    assert.equal(row?.['synchronous_standby_names'], name)
  })
}

/** Cancels the commits of this application that wait for a standby. Returns how many. */
export async function cancelWaits(
  connection: EngineConnection,
  applicationName: string,
): Promise<number> {
  const rows = await query(
    connection,
    `select pg_cancel_backend(pid) from pg_stat_activity
      where application_name = '${applicationName}' and wait_event = 'SyncRep'`,
  )
  return rows.length
}

/** Copies a stopped cluster. A standby recovers forever, like one that lost its primary. */
export function copyCluster(
  from: EngineFolder,
  to: EngineFolder,
  { isStandby = false }: { isStandby?: boolean } = {},
): void {
  to.copy(from.dataDir)
  if (isStandby) writeFileSync(to.path('engine/cluster/standby.signal'), '')
}

/** Makes a base backup of a running server. The file determines how the copy recovers when it starts. */
export async function copyRunning(
  connection: EngineConnection,
  from: EngineFolder,
  to: EngineFolder,
  { signalFile }: { signalFile: 'recovery.signal' | 'standby.signal' },
): Promise<void> {
  const client = new Client(connection)
  await client.connect()
  await client.query(`select pg_backup_start('test', true)`)
  to.copy(from.dataDir)
  const { rows } = await client.query<{ labelfile: string }>(
    'select labelfile from pg_backup_stop(false)',
  )
  await client.end()
  const cluster = to.path('engine/cluster')
  rmSync(join(cluster, 'postmaster.pid'))
  rmSync(to.path('engine/run'), { recursive: true, force: true })
  const label = join(cluster, 'backup_label')
  writeFileSync(label, rows[0]?.labelfile ?? '')
  writeFileSync(join(cluster, signalFile), '')
  for (const path of [label, join(cluster, signalFile)]) {
    execFileSync('chown', ['--reference', cluster, path])
  }
}

/** Both servers in one address, in libpq syntax. */
export function serverListUrl(first: EngineConnection, second: EngineConnection): string {
  const { user, password, database } = first
  const list = new URLSearchParams({
    host: `${first.host},${second.host}`,
    port: `${first.port},${second.port}`,
    target_session_attrs: 'read-write',
  })
  return `postgres://${user}:${encodeURIComponent(password)}@/${database}?${list.toString()}`
}
