import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { createLogger } from '../../../src/platform/logger.ts'
import { type Connection, Database } from '../../../src/platform/pg/database.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'

/**
 * Tampers as the superuser, who can change the tables, checks the result in the same transaction, and rolls it back.
 * The pool has one connection, so everything that uses it is part of the transaction.
 */
export async function tamperWith(
  connection: Connection,
  statement: string,
  check: (database: Database) => Promise<void>,
): Promise<void> {
  await using owner = new Database({
    connection,
    role: 'owner',
    connectionsMax: 1,
    logger: createLogger('silent'),
    timeoutFactor: TIMEOUT_FACTOR,
  })
  const backend = async (): Promise<unknown> =>
    (await sql`select pg_backend_pid(), pg_current_xact_id()`.execute(owner.db)).rows
  await sql`begin`.execute(owner.db)
  await sql.raw(statement).execute(owner.db)
  const before = await backend()
  await check(owner)
  assert.deepEqual(await backend(), before, 'the check ran in another transaction')
  await sql`rollback`.execute(owner.db)
}
