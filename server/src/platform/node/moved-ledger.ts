import type { ClientBase } from 'pg'
import { OperatorError } from '../../errors.ts'
import { SCHEMA } from '../pg/servers.ts'

type MoveState = 'LEAVING' | 'LEFT' | 'ARRIVING'

/** What `annals move` has noted in a database. `other` is the other database's address, without a login. */
export type LedgerMove = { id: string; state: MoveState; other: string; changedAt: Date }

/** Null if no move has started or arrived here, and before the migration that adds the table. */
export async function readLedgerMove(client: ClientBase): Promise<LedgerMove | null> {
  const table = `${SCHEMA}.ledger_move`
  const found = await client.query<{ isThere: boolean }>(
    `select to_regclass('${table}') is not null as "isThere"`,
  )
  if (found.rows[0]?.isThere !== true) return null
  const { rows } = await client.query<LedgerMove>(
    `select id, state, other, changed_at as "changedAt" from ${table}`,
  )
  return rows[0] ?? null
}

/** Throws if the ledger was moved to another database, or if a copy in this one is not complete. */
export async function refuseMovedLedger(client: ClientBase): Promise<void> {
  const move = await readLedgerMove(client)
  if (move?.state === 'LEFT') {
    throw new OperatorError(
      `This ledger was moved to ${move.other} at ${move.changedAt.toISOString()}, and this database accepts no changes. Set ANNALS_DATABASE_URL to that database, and use the same secret key. To use this database again, see annals move --cancel.`,
    )
  }
  if (move?.state === 'ARRIVING') {
    throw new OperatorError(
      'The move of a ledger to this database is not complete. Run annals move again where it was started, with the same --to, or use another database.',
    )
  }
}
