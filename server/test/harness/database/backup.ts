import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import type { Outcome } from '../app/annals-process.ts'
import { runCommandInHost } from '../app/command-host.ts'
import { commandEnv, type Source } from '../app/command-env.ts'
import { eventually } from '../timing/eventually.ts'
import { query } from './engine.ts'
import { createEmptyDatabase, type TestDatabase } from './template-db.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field it expects
export async function backUp(source: Source, folder: string, ...args: string[]): Promise<any> {
  const command = ['backup', '--to', folder, '--json', ...args]
  const { code, stdout, stderr } = await runCommandInHost(command, commandEnv(source))
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

/** An empty database and an empty archive, into which a test restores a backup. */
export type RestoreTarget = AsyncDisposable & {
  database: TestDatabase
  archiveUrl: string
  restore: (from: string, ...args: string[]) => Promise<Outcome>
}

export async function createRestoreTarget(archiveUrl?: string): Promise<RestoreTarget> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-restored-')))
  const database = stack.use(await createEmptyDatabase())
  const target = { database, archiveUrl: archiveUrl ?? pathToFileURL(folder.path).href }
  const kept = stack.move()
  return {
    ...target,
    restore: (from, ...args) =>
      runCommandInHost(['restore', '--from', from, ...args], commandEnv(target)),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** The first two are not in a backup. A running service writes the third once per minute. */
const OTHER = ['schema_migration', 'signer_lease', 'api_key_use']
/** The verification after a restore adds to the audit logs. */
const OF_CUSTOMERS = `not in (select id from workspace where kind = 'SYSTEM')`

/** The start and a hash of every row of every table, in order, without those of system workspaces. */
export async function readAllRows({
  connection,
}: Pick<TestDatabase, 'connection'>): Promise<Map<string, string[]>> {
  const tables = await query(
    connection,
    `select c.relname as name,
            exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'workspace_id')
              as "hasWorkspace"
       from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and c.relpersistence = 'p'
      order by 1`,
  )
  const rows = new Map<string, string[]>()
  for (const { name, hasWorkspace } of tables) {
    if (OTHER.includes(String(name))) continue
    const filter =
      hasWorkspace === true ? `where workspace_id is null or workspace_id ${OF_CUSTOMERS}` : ''
    const row = `left(t::text, 200) || ' ' || md5(t::text) as row`
    const found = await query(connection, `select ${row} from ${String(name)} t ${filter}`)
    rows.set(
      String(name),
      found.map((each) => String(each['row'])).toSorted((a, b) => (a < b ? -1 : 1)),
    )
  }
  return rows
}

/** Keeps a table locked until it is disposed of, so that whatever copies it waits. */
export async function lockTable(
  { connection }: Pick<TestDatabase, 'connection'>,
  name: string,
): Promise<AsyncDisposable & { waiting: (statement?: string) => Promise<void> }> {
  const client = new Client(connection)
  await client.connect()
  await client.query(`begin; lock table ${name} in access exclusive mode`)
  return {
    /** Resolves when a statement that starts like this waits. */
    waiting: (statement = 'copy') =>
      eventually(async () => {
        const waits = await query(
          connection,
          `select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'
              and ltrim(query, E' \\n') like '${statement}%'`,
        )
        assert.equal(waits.length, 1)
      }),
    [Symbol.asyncDispose]: () => client.end(),
  }
}
