import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Checkpoint } from './checkpoint-store.ts'
import { hashPath, inclusionPath, rootOfInclusion, tilesOfPath } from './proof-path.ts'
import { readTiles } from './tile-store.ts'

/** Whether the tree has this hash at this place. False if tiles are missing, as while they are rebuilt. */
export async function includesEvent(
  db: Queryable,
  { size, root }: Pick<Checkpoint, 'size' | 'root'>,
  { workspaceId, seq, hash }: { workspaceId: WorkspaceId; seq: number; hash: string },
): Promise<boolean> {
  const index = seq - 1
  const path = inclusionPath(index, size)
  const hashes = hashPath(path, await readTiles(db, workspaceId, tilesOfPath(path)))
  const leaf = Buffer.from(hash, 'hex')
  return hashes !== null && rootOfInclusion({ index, size, leaf }, hashes)?.equals(root) === true
}
