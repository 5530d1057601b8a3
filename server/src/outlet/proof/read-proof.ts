import assert from 'node:assert/strict'
import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { readHead } from '../../ledger/event-store.ts'
import { REPAIR_RETRY_SECONDS, storageUnavailable } from '../../ledger/segment/archive-refusal.ts'
import {
  type Checkpoint,
  cosignedCheckpoint,
  readPublishedTree,
} from '../../ledger/tree/checkpoint-store.ts'
import {
  consistencyPath,
  hashPath,
  inclusionPath,
  rootOfInclusion,
  tilesOfPath,
} from '../../ledger/tree/proof-path.ts'
import { readTiles } from '../../ledger/tree/tile-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { outsideSlot } from '../../platform/scheduling/slot-scope.ts'
import type { FirstCheckpoints } from './first-checkpoints.ts'
import type { TreeSigner } from './signer.ts'

export type ProofDeps = {
  db: Queryable
  /** Null without an archive: nothing is signed then. */
  signer: Pick<TreeSigner, 'listKeys'> | null
  /** Null without an archive. */
  firstCheckpoints: Pick<FirstCheckpoints, 'sign'> | null
  checkpointSeconds: number
}

/** Throws if nothing is signed. */
export function requireSigning({
  firstCheckpoints,
}: ProofDeps): NonNullable<ProofDeps['firstCheckpoints']> {
  if (firstCheckpoints !== null) return firstCheckpoints
  throw new ApiError('unavailable', {
    message: 'Checkpoints are not signed, because this service has no archive.',
    retryAfterSeconds: REPAIR_RETRY_SECONDS,
  })
}

/**
 * The newest signed checkpoint, with its valid cosignatures. An empty chain gets its first one now, if the storage
 * responds soon, and any other from the signer.
 */
export async function readCheckpoint(
  deps: ProofDeps,
  workspaceId: WorkspaceId,
): Promise<Checkpoint> {
  const { db } = deps
  const firstCheckpoints = requireSigning(deps)
  const published = await readPublishedTree(db, workspaceId)
  const { checkpoint, treeSize } = published
  const cosigned = cosignedCheckpoint(published)
  if (cosigned !== null && treeSize >= cosigned.size) return cosigned
  const isNew = checkpoint === null && ((await readHead(db, workspaceId))?.seq ?? 0) === 0
  if (!isNew) throw notSignedError(deps)
  try {
    await outsideSlot(() => firstCheckpoints.sign(workspaceId))
  } catch (error) {
    throw error instanceof StorageError ? storageUnavailable(error) : error
  }
  const { checkpoint: first } = await readPublishedTree(db, workspaceId)
  if (first === null) throw notSignedError(deps)
  return first
}

type InclusionProof = { checkpoint: Checkpoint; index: number; hashes: Buffer[] }

/** The proof that the event is in the tree of the newest checkpoint. */
export async function proveInclusion(
  deps: ProofDeps,
  { workspaceId, seq, hash }: Pick<SealedEvent, 'workspaceId' | 'seq' | 'hash'>,
): Promise<InclusionProof> {
  const { leaf, ...proof } = await proveLeaf(deps, { workspaceId, seq })
  if (!leaf.equals(Buffer.from(hash, 'hex'))) throw changedError()
  return proof
}

/** Proves inclusion by sequence number, without reading the event: its hash comes from the tree. */
async function proveLeaf(
  deps: ProofDeps,
  { workspaceId, seq }: Pick<SealedEvent, 'workspaceId' | 'seq'>,
): Promise<InclusionProof & { leaf: Buffer }> {
  return await proveLeafOf(deps, await readCheckpoint(deps, workspaceId), { workspaceId, seq })
}

/** Like `proveLeaf`, for a given checkpoint, so that several proofs can belong to one checkpoint. */
export async function proveLeafOf(
  deps: ProofDeps,
  checkpoint: Checkpoint,
  { workspaceId, seq }: Pick<SealedEvent, 'workspaceId' | 'seq'>,
): Promise<InclusionProof & { leaf: Buffer }> {
  const { size, root } = checkpoint
  if (seq > size) throw notSignedError(deps)
  const index = seq - 1
  const path = [[{ height: 0, index }], ...inclusionPath(index, size)]
  const [leaf, ...hashes] = await readPath(deps.db, workspaceId, path)
  assert(leaf, 'a path has its leaf')
  if (rootOfInclusion({ index, size, leaf }, hashes)?.equals(root) !== true) throw changedError()
  return { checkpoint, index, hashes, leaf }
}

/** The proof that the tree of `to` leaves extends that of `from` leaves. */
export async function proveConsistency(
  deps: ProofDeps,
  workspaceId: WorkspaceId,
  range: { from: number; to: number | undefined },
): Promise<{ from: number; to: number; hashes: Buffer[] }> {
  const { size } = await readCheckpoint(deps, workspaceId)
  const { from, to = size } = range
  if (to > size) throw outOfRangeError('to', `must be at most ${size}, the size of the checkpoint`)
  if (from > to) throw outOfRangeError('from', `must be at most ${to}`)
  const hashes = await readPath(deps.db, workspaceId, consistencyPath(from, to))
  return { from, to, hashes }
}

async function readPath(
  db: Queryable,
  workspaceId: WorkspaceId,
  path: ReturnType<typeof inclusionPath>,
): Promise<Buffer[]> {
  const hashes = hashPath(path, await readTiles(db, workspaceId, tilesOfPath(path)))
  if (hashes === null) throw changedError()
  return hashes
}

function notSignedError({ checkpointSeconds }: ProofDeps): ApiError {
  return new ApiError('conflict', {
    message:
      'No signed checkpoint contains this yet. Retry after the delay in the Retry-After header.',
    retryAfterSeconds: checkpointSeconds,
  })
}

/** Someone changed the database, or its files are damaged. */
function changedError(): ApiError {
  return new ApiError('unavailable', {
    message:
      'The stored events don’t match the signed checkpoint. Ask the operator of this service to run annals verify.',
    retryAfterSeconds: REPAIR_RETRY_SECONDS,
  })
}

function outOfRangeError(path: string, message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: ${path} ${message}.`,
    details: [{ path, message }],
  })
}
