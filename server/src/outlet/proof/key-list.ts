import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { deriveSeed, type SigningKey, signingKeyOf } from './signing-key.ts'
import { isRecord, parseStoredObject, storedJson } from './stored-json.ts'

/** A replaced key signs for this long beside the new one, so that verifiers have time to get the new one. */
const OVERLAP_MS = 30 * DAY_MS
const KEY_LIST = 'signer/keys'
const VERSION = 1
const TRIES_MAX = 5

/** Where the keys of this node come from. */
export type KeySource = {
  secretKey: Secret<Buffer>
  /** `ANNALS_SIGNING_KEY` and `ANNALS_SIGNING_KEY_PREVIOUS`, instead of keys derived from the secret key. */
  configured: Secret<Buffer> | null
  previous: Secret<Buffer> | null
}

/** A key that has signed checkpoints. `to` is null for the current one. */
export type ListedSigningKey = { publicKey: string; from: string; to: string | null }
type KeyList = { generation: number; keys: ListedSigningKey[] }

/**
 * The keys to sign with now, the current one first. They are listed in the storage of the archive with their
 * times, so that a new key is known to all nodes before it signs anything.
 */
export async function loadSigningKeys(
  archive: ObjectStore,
  source: KeySource,
  clock: Clock,
): Promise<SigningKey[]> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const { list, tag } = await readKeyList(archive)
    const [current, ...others] = keysOf(source, list.generation)
    const nowMs = clock()
    const listed = list.keys.find(({ publicKey }) => publicKey === textOf(current))
    if (listed?.to === null) {
      return [current, ...others.filter((key) => isValid(list, key, nowMs))]
    }
    const keys = [...closeKeys(list, others, nowMs), openKey(current, nowMs)]
    const bytes = storedJson({ version: VERSION, generation: list.generation, keys })
    await archive.replace(KEY_LIST, { bytes, tag })
  }
  throw new StorageError(
    `${KEY_LIST} keeps changing. Check that all nodes have the same signing key.`,
  )
}

/** Every key that has signed, the oldest first. */
export async function listSigningKeys(archive: ObjectStore): Promise<ListedSigningKey[]> {
  return (await readKeyList(archive)).list.keys
}

function keysOf(
  { secretKey, configured, previous }: KeySource,
  generation: number,
): [SigningKey, ...SigningKey[]] {
  if (configured !== null) {
    return [signingKeyOf(configured), ...(previous ? [signingKeyOf(previous)] : [])]
  }
  const older = generation > 0 ? [signingKeyOf(deriveSeed(secretKey, generation - 1))] : []
  return [signingKeyOf(deriveSeed(secretKey, generation)), ...older]
}

function isValid({ keys }: KeyList, key: SigningKey, nowMs: number): boolean {
  const to = keys.find(({ publicKey }) => publicKey === textOf(key))?.to
  return typeof to === 'string' && Date.parse(to) > nowMs
}

function openKey(key: SigningKey, nowMs: number): ListedSigningKey {
  return { publicKey: textOf(key), from: new Date(nowMs).toISOString(), to: null }
}

/** A key that this node still has signs until the overlap ends. Any other can't sign any more. */
function closeKeys(
  { keys }: KeyList,
  kept: readonly SigningKey[],
  nowMs: number,
): ListedSigningKey[] {
  const keptKeys = new Set(kept.map(textOf))
  return keys.map((key) => {
    if (key.to !== null) return key
    const toMs = keptKeys.has(key.publicKey) ? nowMs + OVERLAP_MS : nowMs
    return { ...key, to: new Date(toMs).toISOString() }
  })
}

async function readKeyList(archive: ObjectStore): Promise<{ list: KeyList; tag: string | null }> {
  const found = await archive.readTagged(KEY_LIST)
  if (found === null) return { list: { generation: 0, keys: [] }, tag: null }
  const list = parseKeyList(found.bytes)
  if (list === null) {
    throw new StorageError(`${KEY_LIST} in the archive is damaged. Restore it from a backup.`)
  }
  return { list, tag: found.tag }
}

function parseKeyList(bytes: Buffer): KeyList | null {
  const value = parseStoredObject(bytes)
  if (value?.['version'] !== VERSION) return null
  const { generation, keys } = value
  if (typeof generation !== 'number' || !Number.isSafeInteger(generation)) return null
  if (!Array.isArray(keys)) return null
  const parsed = keys.flatMap(parseKey)
  return parsed.length === keys.length ? { generation, keys: parsed } : null
}

function parseKey(value: unknown): ListedSigningKey[] {
  if (!isRecord(value)) return []
  const { publicKey, from, to } = value
  if (typeof publicKey !== 'string' || typeof from !== 'string') return []
  return typeof to === 'string' || to === null ? [{ publicKey, from, to }] : []
}

const textOf = ({ publicKey }: SigningKey): string => publicKey.toString('base64')
