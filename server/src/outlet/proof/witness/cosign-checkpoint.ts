import { readPublishedTree } from '../../../ledger/tree/checkpoint-store.ts'
import { readCosignedSize, writeCosignature } from '../../../ledger/tree/cosignature-store.ts'
import { consistencyPath, hashPath, tilesOfPath } from '../../../ledger/tree/proof-path.ts'
import { readTiles } from '../../../ledger/tree/tile-store.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { WitnessSetting } from '../../../platform/tlog/witness-setting.ts'
import { addCheckpoint, type WitnessOutcome } from './add-checkpoint.ts'

/** `skipped`: there is nothing to send now. */
export type CosignResult = Exclude<WitnessOutcome, { kind: 'conflict' }> | { kind: 'skipped' }

type CosignOptions = { db: Queryable; witness: WitnessSetting; signal: AbortSignal }

/** Sends the newest checkpoint of a chain to a witness, and stores the cosignature. */
export async function cosignCheckpoint(
  { db, witness, signal }: CosignOptions,
  workspaceId: WorkspaceId,
): Promise<CosignResult> {
  const { checkpoint, treeSize } = await readPublishedTree(db, workspaceId)
  if (checkpoint === null || treeSize < checkpoint.size) return { kind: 'skipped' }
  const { size, root, note } = checkpoint
  const known = await readCosignedSize(db, { workspaceId, witness: witness.vkey })
  let oldSize = known <= size ? known : 0
  let outcome = await send(oldSize)
  // The witness may have seen more than the database knows, for example after a restore.
  if (outcome.kind === 'conflict' && outcome.size <= size && outcome.size !== oldSize) {
    oldSize = outcome.size
    outcome = await send(oldSize)
  }
  if (outcome.kind === 'conflict') return conflictOf(outcome.size, size)
  if (outcome.kind === 'cosigned') {
    const { line } = outcome
    await writeCosignature(db, { workspaceId, witness: witness.vkey, size, root, line })
  }
  return outcome

  async function send(from: number): Promise<WitnessOutcome> {
    const path = consistencyPath(from, size)
    const proof = hashPath(path, await readTiles(db, workspaceId, tilesOfPath(path)))
    if (proof === null) return { kind: 'refused', reason: 'the tiles of the tree are incomplete' }
    return await addCheckpoint(witness, { oldSize: from, proof, note }, signal)
  }
}

function conflictOf(witnessSize: number, size: number): CosignResult {
  const reason =
    witnessSize > size
      ? `it has cosigned a tree of ${witnessSize} events, but the checkpoint has ${size}`
      : `it contradicts itself about the tree of ${witnessSize} events`
  return { kind: 'refused', reason }
}
