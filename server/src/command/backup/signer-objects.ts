import { EMPTY_HEAD } from '../../ledger/event.ts'
import { readPublishedTree } from '../../ledger/tree/checkpoint-store.ts'
import { HASH_BYTES, rootOf } from '../../ledger/tree/merkle.ts'
import { frontierPath, hashPath, tilesOfPath } from '../../ledger/tree/proof-path.ts'
import { TILE_WIDTH } from '../../ledger/tree/tile.ts'
import { readTiles } from '../../ledger/tree/tile-store.ts'
import type { SignerObject } from '../../outlet/backup/archive-copy.ts'
import type { BackedUpHead } from '../../outlet/backup/event-coverage.ts'
import type { LedgerSnapshot } from '../../outlet/backup/ledger-snapshot.ts'
import {
  readState,
  readUnlessLarge,
  STATES_PREFIX,
  workspaceOfState,
  writeState,
} from '../../outlet/proof/signer-state.ts'
import { listExistingWorkspaces } from '../../tenancy/workspace/workspace-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { LISTED_KEYS_MAX, type ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'

type SignerDeps = {
  archive: ObjectStore
  /** Outside the snapshot. */
  db: Queryable
  snapshot: LedgerSnapshot
  heads: readonly BackedUpHead[]
}

/**
 * The signer's objects as of the snapshot. The signer keeps running during the backup, so an object can be newer than
 * the snapshot, and the restored chain would look as if it had lost events. In that case, the backup contains the last
 * state published in the snapshot instead.
 */
export async function* listSignerObjects(
  deps: SignerDeps,
): AsyncGenerator<SignerObject, void, void> {
  const { archive } = deps
  const seqOf = new Map<string, number>(deps.heads.map((head) => [head.workspaceId, head.seq]))
  let cursor: string | null = null
  do {
    const page = await archive.list(STATES_PREFIX, { cursor, limit: LISTED_KEYS_MAX })
    for (const key of page.keys) {
      const workspaceId = workspaceOfState(key)
      const bytes =
        workspaceId === null
          ? await readPlain(archive, key)
          : await readStateIn(deps, workspaceId, seqOf.get(workspaceId) ?? null)
      if (bytes !== null) yield { key, bytes }
    }
    cursor = page.cursor
  } while (cursor !== null)
}

async function readPlain(archive: ObjectStore, key: string): Promise<Buffer | null> {
  const object = await readUnlessLarge(archive, key)
  return object === null || object === 'too large' ? null : object.bytes
}

/**
 * Null if nothing was signed yet. A workspace without a head in the snapshot was created after it, which doesn't belong
 * to the backup, or it is lost, and a restore should still show that.
 */
async function readStateIn(
  { archive, db, snapshot }: SignerDeps,
  workspaceId: WorkspaceId,
  seq: number | null,
): Promise<Buffer | null> {
  if (seq === null && (await listExistingWorkspaces(db, [workspaceId])).length > 0) return null
  const { object, tree } = await readState(archive, workspaceId)
  if (object === null || tree === null || tree.size <= (seq ?? tree.size))
    return object && object.bytes
  return await snapshot.query((trx) => rebuildState(trx, workspaceId))
}

/** The state from which the published checkpoint was signed. All of it is in the tiles. */
async function rebuildState(trx: Queryable, workspaceId: WorkspaceId): Promise<Buffer | null> {
  const { checkpoint } = await readPublishedTree(trx, workspaceId)
  if (checkpoint === null) return null
  const { size } = checkpoint
  const path = frontierPath(size)
  const lastTile = { level: 0, number: Math.max(0, Math.ceil(size / TILE_WIDTH) - 1) }
  const tileOf = await readTiles(trx, workspaceId, [...tilesOfPath(path), lastTile])
  const frontier = hashPath(path, tileOf)
  const at = ((size - 1) % TILE_WIDTH) * HASH_BYTES
  const lastHash = tileOf(lastTile)?.toString('hex', at, at + HASH_BYTES) ?? ''
  // If tiles are missing, the signer refuses after a restore, until an operator accepts the chain.
  if (frontier === null || !rootOf(frontier).equals(checkpoint.root)) return null
  return writeState({ ...checkpoint, frontier, lastHash: size === 0 ? EMPTY_HEAD.hash : lastHash })
}
