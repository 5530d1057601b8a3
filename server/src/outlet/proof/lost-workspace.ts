import { OperatorError } from '../../errors.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { listExistingWorkspaces } from '../../tenancy/workspace/workspace-store.ts'
import {
  readState,
  readUnlessLarge,
  type SignedTree,
  STATES_PREFIX,
  stateKeyOf,
  tooLargeText,
  workspaceOfState,
} from './signer-state.ts'

/** A signed workspace that is missing from the database. */
export type LostWorkspace = {
  workspaceId: WorkspaceId
  /** What was signed last, or null if the object is damaged. */
  signed: SignedTree | null
  /** Null if the object is too large to be read. */
  stored: Buffer | null
  /** Whether an operator accepted the loss of exactly what was signed. */
  isAccepted: boolean
}

type LostPage = { lost: LostWorkspace[]; cursor: string | null }
/** The storage doesn't let this node list objects. */
type ListDenied = { denied: string }

/** Compares a page of what was signed with the workspaces in the database. */
export async function findLost(
  { db, archive, signal }: { db: Queryable; archive: ObjectStore; signal?: AbortSignal },
  page: { cursor: string | null; limit: number },
): Promise<LostPage | ListDenied> {
  const listed = await archive.list(STATES_PREFIX, page).catch(whenDenied)
  if ('denied' in listed) return listed
  const signedIds = listed.keys.flatMap((key) => workspaceOfState(key) ?? [])
  // Read after the list: a workspace is in the database before it is signed.
  const existing = new Set(await listExistingWorkspaces(db, signedIds))
  const lost: LostWorkspace[] = []
  for (const workspaceId of signedIds) {
    signal?.throwIfAborted()
    const found = existing.has(workspaceId) ? null : await readLost(archive, workspaceId)
    if (found) lost.push(found)
  }
  return { lost, cursor: listed.cursor }
}

function whenDenied(error: unknown): ListDenied {
  if (error instanceof StorageError && error.isDenied) return { denied: error.message }
  throw error
}

/** What was signed in a workspace that is missing from the database, or null if nothing was. */
export async function readLost(
  archive: ObjectStore,
  workspaceId: WorkspaceId,
): Promise<LostWorkspace | null> {
  const { object, tree, isDamaged } = await readState(archive, workspaceId)
  if (object === null && !isDamaged) return null
  const accepted = await readUnlessLarge(archive, acceptedKeyOf(workspaceId))
  const stored = object && object.bytes
  const isAccepted =
    stored !== null &&
    accepted !== null &&
    accepted !== 'too large' &&
    accepted.bytes.equals(stored)
  return { workspaceId, signed: tree, stored, isAccepted }
}

/**
 * Copies what was signed. The loss counts as accepted while the copy equals the object, so the acceptance covers
 * nothing that is signed later. The object itself stays: if a newer backup brings the workspace back, the signer
 * continues from it. Returns the key of the copy.
 */
export async function acceptLost(
  archive: ObjectStore,
  { workspaceId, stored }: LostWorkspace,
): Promise<string> {
  if (stored === null) throw new OperatorError(tooLargeText(stateKeyOf(workspaceId)))
  const key = acceptedKeyOf(workspaceId)
  const earlier = await readUnlessLarge(archive, key)
  if (earlier === 'too large') throw new OperatorError(tooLargeText(key))
  const tag = await archive.replace(key, { bytes: stored, tag: earlier?.tag ?? null })
  const written = tag === null ? await archive.readTagged(key) : null
  if (written && !written.bytes.equals(stored)) throw new Error(`${key} was changed meanwhile`)
  return key
}

function acceptedKeyOf(workspaceId: WorkspaceId): string {
  return `${stateKeyOf(workspaceId)}.lost`
}

/** As in "3 events were signed". */
export function signedText({ signed }: Pick<LostWorkspace, 'signed'>): string {
  if (signed === null) return 'an unknown number of events were signed'
  return signed.size === 1 ? '1 event was signed' : `${signed.size} events were signed`
}
