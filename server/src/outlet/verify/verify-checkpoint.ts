import { listChainLinks } from '../../ledger/event-store.ts'
import { listSegments } from '../../ledger/segment/segment-store.ts'
import {
  type Checkpoint,
  cosignedCheckpoint,
  readPublishedTree,
} from '../../ledger/tree/checkpoint-store.ts'
import {
  hashPath,
  inclusionPath,
  rootOfInclusion,
  tilesOfPath,
} from '../../ledger/tree/proof-path.ts'
import { readTiles } from '../../ledger/tree/tile-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { checkLogNote } from '../../platform/tlog/signed-note.ts'

/** Lists the public keys that have signed checkpoints, in base64. They are not in the database. */
export type ListSigners = () => Promise<readonly { publicKey: string }[]>

type CheckpointVerdict =
  { ok: true; checkpoint: Checkpoint | null } | { ok: false; seq: number; problem: string }

const NONE: CheckpointVerdict = { ok: true, checkpoint: null }
const TRIES_MAX = 3

/**
 * Compares verified events with the newest signed checkpoint: the last one that it covers must be in its tree. Then
 * so are all before it, because each event contains the hash of the one before. Someone who rewrote events and
 * their hashes can't sign a checkpoint for them. Null if no checkpoint covers any of the events.
 */
export async function compareWithCheckpoint(
  db: Queryable,
  listSigners: ListSigners,
  verified: {
    workspaceId: WorkspaceId
    firstSeq: number
    lastSeq: number
    /** Null if it has to be read. */
    lastHash: string | null
  },
): Promise<CheckpointVerdict> {
  const { workspaceId, firstSeq, lastSeq, lastHash } = verified
  for (let tries = 1; ; tries += 1) {
    const published = await readPublishedTree(db, workspaceId)
    const { checkpoint, treeSize } = published
    // While tiles are rebuilt, there are no proofs.
    if (checkpoint === null || treeSize < checkpoint.size) return NONE
    const seq = Math.min(lastSeq, checkpoint.size)
    if (seq < firstSeq) return NONE
    const known = seq === lastSeq ? lastHash : null
    const hash = known ?? (await readHash(db, workspaceId, seq))
    if (hash === null) return NONE
    if (await isInTree(db, checkpoint, { workspaceId, seq, hash })) {
      const keys = (await listSigners()).map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
      if (checkLogNote(checkpoint, keys) === 'valid') {
        return { ok: true, checkpoint: cosignedCheckpoint(published) }
      }
      const problem = `the checkpoint of ${checkpoint.size} events in the database is not signed with a key of this service`
      return { ok: false, seq, problem }
    }
    const now = await readPublishedTree(db, workspaceId)
    const isSame = now.treeSize === treeSize && now.checkpoint?.note === checkpoint.note
    if (isSame || tries === TRIES_MAX) {
      const problem = `it is not in the signed checkpoint of ${checkpoint.size} events`
      return { ok: false, seq, problem }
    }
  }
}

/** Null if the event is inside an archived file, which means that the signer is briefly far behind. */
async function readHash(
  db: Queryable,
  workspaceId: WorkspaceId,
  seq: number,
): Promise<string | null> {
  const run = { workspaceId, fromSeq: seq, toSeq: seq }
  const [link] = await listChainLinks(db, run)
  if (link) return link.hash
  const [file] = await listSegments(db, { ...run, limit: 1 })
  return file?.lastSeq === seq ? file.lastHash : null
}

async function isInTree(
  db: Queryable,
  { size, root }: Checkpoint,
  { workspaceId, seq, hash }: { workspaceId: WorkspaceId; seq: number; hash: string },
): Promise<boolean> {
  const index = seq - 1
  const path = inclusionPath(index, size)
  const hashes = hashPath(path, await readTiles(db, workspaceId, tilesOfPath(path)))
  const leaf = Buffer.from(hash, 'hex')
  return hashes !== null && rootOfInclusion({ index, size, leaf }, hashes)?.equals(root) === true
}
