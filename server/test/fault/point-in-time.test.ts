import assert from 'node:assert/strict'
import { chmodSync, existsSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'
import { EngineFolder, query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { copyRunning } from '../harness/database/standby.ts'
import { urlOf } from '../harness/database/template-db.ts'
import { sendEvents } from '../harness/proof/proof.ts'
import { eventually } from '../harness/timing/eventually.ts'

test('point-in-time recovery of your own PostgreSQL restores a ledger that verifies', async () => {
  await using wal = await mkdtempDisposable(join(tmpdir(), 'annals-wal-'))
  // The server runs as another user.
  chmodSync(wal.path, 0o777)
  await using source = EngineFolder.prepared()
  await using target = new EngineFolder()
  const settings = {
    ...SMALL_ENGINE,
    wal_level: 'replica',
    archive_mode: 'on',
    archive_command: `cp %p ${wal.path}/%f`,
  }
  await using primary = await startEngine({ dataDir: source.dataDir, exclusive: false, settings })
  const { connection } = primary
  await using annals = await startTestApp({
    role: 'api',
    databaseUrl: urlOf(connection),
    env: { ANNALS_RATE_LIMITS: 'off' },
  })
  const { workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, 5)
  // As docs/backup.md describes it.
  await copyRunning(connection, source, target, { signalFile: 'recovery.signal' })
  await sendEvents(annals, workspaceKey, 7)
  const [row] = await query(connection, 'select clock_timestamp()::text as at')
  await sendEvents(annals, workspaceKey, 11)
  const [last] = await query(connection, 'select pg_walfile_name(pg_switch_wal()) as name')
  await eventually(() => assert(existsSync(join(wal.path, String(last?.['name'])))))

  const recovery = {
    ...SMALL_ENGINE,
    restore_command: `cp ${wal.path}/%f %p`,
    recovery_target_time: String(row?.['at']),
    recovery_target_action: 'promote',
  }
  await using restored = await startEngine({
    dataDir: target.dataDir,
    exclusive: false,
    settings: recovery,
  })
  await eventually(async () => {
    const [state] = await query(restored.connection, 'select pg_is_in_recovery() as "isBehind"')
    assert.equal(state?.['isBehind'], false)
  })
  const { code, stdout, stderr } = await runCommandInHost(['verify'], {
    ANNALS_DATABASE_URL: urlOf(restored.connection),
    ANNALS_SECRET_KEY: SECRET_KEY,
  })
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /^ok: 12 events in 2 workspaces/)
})
