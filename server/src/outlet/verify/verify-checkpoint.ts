import { setTimeout as delay } from 'node:timers/promises'
import { readPlace } from '../../ledger/chain-search.ts'
import { readHead } from '../../ledger/event-store.ts'
import {
  type Checkpoint,
  cosignedCheckpoint,
  readPublishedTree,
} from '../../ledger/tree/checkpoint-store.ts'
import { includesEvent } from '../../ledger/tree/inclusion.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { checkLogNote } from '../../platform/tlog/signed-note.ts'
import { readArchivedEvent } from './verify-archive.ts'

/** Lists the public keys that have signed checkpoints, in base64. They are not in the database. */
export type ListSigners = () => Promise<readonly { publicKey: string }[]>

type CheckpointVerdict =
  { ok: true; checkpoint: Checkpoint | null } | { ok: false; seq: number; problem: string }

/** What the signer has signed last, from the archive, and the hash of the last event in it. */
export type SignedState = Checkpoint & { lastHash: string }

/** The tiles that would prove an event are missing, as while they are rebuilt. */
export class TreeUnreadyError extends Error {
  override name = 'TreeUnreadyError'
}

const NONE: CheckpointVerdict = { ok: true, checkpoint: null }
const TRIES_MAX = 20
const RETRY_MS = 250

/**
 * Compares verified events with the newest signed checkpoint: the last one that it covers must be in its tree. Then
 * so are all before it, because each event contains the hash of the one before. Someone who rewrote events and
 * their hashes can't sign a checkpoint for them, and someone who deletes what was published can't delete the
 * signer's state. Null if no checkpoint covers any of the events.
 */
export async function compareWithCheckpoint(
  { db, archive, listSigners }: { db: Queryable; archive: ObjectStore; listSigners: ListSigners },
  verified: {
    workspaceId: WorkspaceId
    firstSeq: number
    lastSeq: number
    /** Null if it has to be read. */
    lastHash: string | null
  },
  /** Null to compare only with what is published. */
  signed: SignedState | null,
): Promise<CheckpointVerdict> {
  const { workspaceId, firstSeq, lastSeq, lastHash } = verified
  for (let tries = 1; ; tries += 1) {
    const published = await readPublishedTree(db, workspaceId)
    const { treeSize } = published
    const isAhead = signed !== null && signed.size > (published.checkpoint?.size ?? -1)
    const checkpoint = isAhead ? signed : published.checkpoint
    if (checkpoint === null) return NONE
    const seq = Math.min(lastSeq, checkpoint.size)
    if (seq < 1 || seq < firstSeq) return NONE
    const known = seq === lastSeq ? lastHash : null
    const hash = known ?? (await readHash(db, archive, { workspaceId, seq }))
    if (hash === null) return NONE
    if (
      treeSize >= checkpoint.size &&
      (await includesEvent(db, checkpoint, { workspaceId, seq, hash }))
    ) {
      const keys = (await listSigners()).map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
      if (checkLogNote(checkpoint, keys) === 'valid') {
        return { ok: true, checkpoint: isAhead ? checkpoint : cosignedCheckpoint(published) }
      }
      const problem = `the newest checkpoint, of ${checkpoint.size} events, is not signed with a key of this service`
      return { ok: false, seq, problem }
    }
    const now = await readPublishedTree(db, workspaceId)
    const isSame = now.treeSize === treeSize && now.checkpoint?.note === published.checkpoint?.note
    if (treeSize < checkpoint.size) {
      if (signed === null) return NONE
      const verdict = await compareEnds(db, archive, { workspaceId, signed })
      if (verdict !== null) return verdict
      if (tries === TRIES_MAX) throw new TreeUnreadyError(`the tree has ${treeSize} events`)
      await delay(RETRY_MS)
    } else if (isSame || tries === TRIES_MAX) {
      const problem = `it is not in the signed checkpoint of ${checkpoint.size} events`
      return { ok: false, seq, problem }
    }
  }
}

/** Without tiles: null if the chain still has the last signed event. */
async function compareEnds(
  db: Queryable,
  archive: ObjectStore,
  { workspaceId, signed: { size, lastHash } }: { workspaceId: WorkspaceId; signed: SignedState },
): Promise<CheckpointVerdict | null> {
  const head = await readHead(db, workspaceId)
  // The caller reports a chain that is shorter than what was signed.
  if ((head?.seq ?? 0) < size) return NONE
  const hash = await readHash(db, archive, { workspaceId, seq: size })
  if (hash === null || hash === lastHash) return null
  return { ok: false, seq: size, problem: `it is not in the signed checkpoint of ${size} events` }
}

/** Null if the event is missing, which the verification of the chain reports. */
async function readHash(
  db: Queryable,
  archive: ObjectStore,
  { workspaceId, seq }: { workspaceId: WorkspaceId; seq: number },
): Promise<string | null> {
  const place = await readPlace(db, workspaceId, seq)
  if (place) return place.hash
  // If the signer is behind, or refuses to sign, the last signed event can be anywhere in a file.
  return (await readArchivedEvent(db, archive, { workspaceId, seq }))?.hash ?? null
}
