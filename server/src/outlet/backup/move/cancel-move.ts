import type { PoolClient } from 'pg'
import { OperatorError } from '../../../errors.ts'
import type { Database } from '../../../platform/pg/database.ts'
import { listHeads } from '../snapshot-store.ts'
import { withClient, withTarget } from './move-ledger.ts'
import {
  countRunningNodes,
  deleteLedgerMove,
  type LedgerMove,
  readLedgerMove,
  removeRefusals,
  withdrawMove,
  writeLedgerMove,
} from './move-store.ts'

type CancelOptions = {
  source: Database
  /** Null if the operator says that the target doesn't exist anymore, or gave none. */
  target: Database | null
  isTargetGone: boolean
}

/** Makes the source accept writes again. Returns the state that it was in, or null if there was nothing to cancel. */
export async function cancelMove(options: CancelOptions): Promise<LedgerMove['state'] | null> {
  return await withClient(options.source, async (source) => {
    const move = await readLedgerMove(source)
    if (move?.state === 'ARRIVING') {
      throw new OperatorError(
        'This database is the target of a move that is not complete. Run annals move --cancel with the source.',
      )
    }
    if (move?.state === 'LEFT') await releaseTarget(source, move, options)
    // Before the triggers are removed, because a mover that is running must not complete after that.
    if (move !== null && !(await withdrawMove(source, move))) {
      throw new OperatorError('The move has gone on meanwhile. Run the command again.')
    }
    await removeRefusals(source)
    return move?.state ?? null
  })
}

/** After this, no node can start on the target. Throws if the target has events that the source doesn't have. */
async function releaseTarget(
  source: PoolClient,
  move: LedgerMove,
  { target: database, isTargetGone }: CancelOptions,
): Promise<void> {
  if (isTargetGone) return
  if (database === null) {
    throw new OperatorError(
      `This ledger was moved to ${move.other}. Add --to with the address of that database, so that the command can check that it has stored nothing since. If the database doesn't exist anymore, add --target-is-gone.`,
    )
  }
  await withTarget(database, async (target) => {
    const arriving = await readLedgerMove(target)
    if (arriving !== null && arriving.id !== move.id) {
      throw new OperatorError('The database in --to is not the target of this move.')
    }
    const nodes = await countRunningNodes(target)
    if (nodes > 0) {
      throw new OperatorError(
        `${nodes} nodes are running on the target. Stop them, wait 10 seconds, and run the command again.`,
      )
    }
    // A node that starts now refuses.
    await writeLedgerMove(target, { id: move.id, state: 'ARRIVING', other: 'a canceled move' })
    const [here, there] = [await listHeads(source), await listHeads(target)]
    const isSame =
      here.length === there.length &&
      here.every(
        ({ workspaceId, hash }, nth) =>
          workspaceId === there[nth]?.workspaceId && hash === there[nth].hash,
      )
    if (isSame || arriving !== null) return
    await deleteLedgerMove(target, move.id)
    throw new OperatorError(
      'The target has stored events since the move, which the source lacks, so the move was not canceled. Keep using the target.',
    )
  })
}
