import { parseId, type WorkspaceId } from '../../platform/id.ts'
import { EMPTY_HEAD } from '../../ledger/event.ts'
import { type Frontier, rootOf } from '../../ledger/tree/merkle.ts'
import { isFrontier } from '../../ledger/tree/proof-path.ts'
import type { Checkpoint } from '../../ledger/tree/checkpoint-store.ts'
import {
  type ObjectStore,
  StorageError,
  type TaggedObject,
} from '../../platform/object-store/object-store.ts'
import {
  checkLogNote,
  keyIdOf,
  LOG_SIGNATURE,
  type NoteKey,
  noteKeyText,
  parseCheckpoint,
} from '../../platform/tlog/signed-note.ts'
import { parseStoredObject, storedJson } from './stored-json.ts'

/** A tree that was signed, and what is needed to extend it. */
export type SignedTree = Checkpoint & {
  frontier: Frontier
  /** The hash of the last event, which the next one continues. */
  lastHash: string
}

/** What the signer knows about a chain before it signs it for the first time. */
export const UNSIGNED: Pick<SignedTree, 'size' | 'frontier' | 'lastHash'> = {
  size: 0,
  frontier: [],
  lastHash: EMPTY_HEAD.hash,
}

const VERSION = 1

export const STATES_PREFIX = 'signer/'

/** The object that contains the last signed tree of a chain. */
export function stateKeyOf(workspaceId: WorkspaceId): string {
  return `${STATES_PREFIX}${workspaceId}`
}

/** The workspace of such an object, or null for the signer's other objects. */
export function workspaceOfState(key: string): WorkspaceId | null {
  return parseId<'workspace'>(key.slice(STATES_PREFIX.length))
}

export function writeState(tree: SignedTree): Buffer {
  const { origin, size, root, note, vkey, signedAt, frontier, lastHash } = tree
  return storedJson({
    version: VERSION,
    origin,
    size,
    root: root.toString('base64'),
    frontier: frontier.map((hash) => hash.toString('base64')),
    lastHash,
    note,
    vkey,
    signedAt: signedAt.toISOString(),
  })
}

/** `object` is null if there is none, or if it is too large to be read. `tree` is null unless the object is valid. */
type StoredState = { object: TaggedObject | null; tree: SignedTree | null; isDamaged: boolean }

export async function readState(
  archive: ObjectStore,
  workspaceId: WorkspaceId,
): Promise<StoredState> {
  const object = await readUnlessLarge(archive, stateKeyOf(workspaceId))
  if (object === 'too large') return { object: null, tree: null, isDamaged: true }
  const tree = object && parseState(object.bytes)
  return { object, tree, isDamaged: object !== null && tree === null }
}

/** Null if the object doesn't exist. An object that is larger than any that the signer writes is not read. */
export async function readUnlessLarge(
  archive: ObjectStore,
  key: string,
): Promise<TaggedObject | 'too large' | null> {
  try {
    return await archive.readTagged(key)
  } catch (error) {
    if (error instanceof StorageError && error.isTooLarge) return 'too large'
    throw error
  }
}

/** For an operator: the signer and the commands don't replace an object that they can't read. */
export function tooLargeText(key: string): string {
  return `The object ${key} in the archive is damaged: it is larger than any that the signer writes. Move it out of the archive, and run the command again.`
}

/**
 * Whether these keys, and no others, signed exactly this tree, for this workspace. The storage can contain anything,
 * so the signer must not extend any other tree, nor publish a signature that isn't its own. The root covers the
 * frontier.
 */
export function isSignedTree(
  tree: Pick<Checkpoint, 'origin' | 'size' | 'root' | 'note' | 'vkey'>,
  { workspaceId, publicKeys }: { workspaceId: WorkspaceId; publicKeys: readonly Buffer[] },
): boolean {
  const { origin, note, vkey } = tree
  if (!origin.endsWith(`/${workspaceId}`) || checkLogNote(tree, publicKeys) !== 'valid')
    return false
  const signatures = parseCheckpoint(note)?.signatures ?? []
  const keys = publicKeys.map((publicKey): NoteKey => ({
    name: origin,
    type: LOG_SIGNATURE,
    publicKey,
  }))
  const keyIds = keys.map(keyIdOf)
  const isOwn = signatures.every(({ name, keyId }) => name === origin && keyIds.includes(keyId))
  return isOwn && keys.some((key) => noteKeyText(key) === vkey)
}

/** Null if the bytes are not a state that this program has written: the signer must not guess. */
function parseState(bytes: Buffer): SignedTree | null {
  const value = parseStoredObject(bytes)
  if (value?.['version'] !== VERSION) return null
  const { origin, size, root, frontier, lastHash, note, vkey, signedAt } = value
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) return null
  if (!isText(origin) || !isText(root) || !isText(lastHash) || !isText(note)) return null
  if (!isText(vkey) || !isText(signedAt) || !Array.isArray(frontier)) return null
  const hashes = frontier.filter(isText).map((text) => Buffer.from(text, 'base64'))
  if (hashes.length !== frontier.length || !isFrontier(hashes, size)) return null
  if (rootOf(hashes).toString('base64') !== root || !/^[0-9a-f]{64}$/.test(lastHash)) return null
  const time = new Date(signedAt)
  if (Number.isNaN(time.getTime())) return null
  const tree = { origin, size, root: rootOf(hashes), note, vkey, frontier: hashes, lastHash }
  return { ...tree, signedAt: time }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
