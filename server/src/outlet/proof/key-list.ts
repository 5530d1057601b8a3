import { OperatorError } from '../../errors.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { deriveSeed, type SigningKey, signingKeyOf } from './signing-key.ts'
import { isRecord, parseStoredObject, storedJson } from './stored-json.ts'

/** A replaced key signs for this long beside the new one, so that verifiers have time to get the new one. */
const OVERLAP_MS = 30 * DAY_MS
/** More signatures would make every checkpoint and proof longer. */
const OLDER_KEYS_MAX = 3
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

/** A key that replaced another one. `announced` is false until all companies have an audit entry about it. */
type StoredKey = ListedSigningKey & { announced: boolean }
type KeyList = { generation: number; keys: StoredKey[] }

/** A new key, and the one that it replaced. */
export type KeyChange = Omit<ListedSigningKey, 'to'> & { previous: ListedSigningKey }

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
    if (listed) {
      // Another node already has the new key, which must not be closed again.
      if (listed.to !== null && Date.parse(listed.to) <= nowMs) throw replacedKey(listed.to)
      return [current, ...others.filter((key) => isValid(list, key, nowMs))]
    }
    const announced = list.keys.length === 0
    const keys = [...closeKeys(list, others, nowMs), openKey(current, nowMs, announced)]
    await archive.replace(KEY_LIST, { bytes: writeKeyList({ ...list, keys }), tag })
  }
  throw changesTooOften()
}

/**
 * Replaces the derived key with that of the next generation. Both sign for 30 days. The caller then announces the
 * change; if it doesn't, the signer does.
 */
export async function rotateDerivedKey(
  archive: ObjectStore,
  secretKey: Secret<Buffer>,
  clock: Clock,
): Promise<ListedSigningKey[]> {
  const source = { secretKey, configured: null, previous: null }
  await loadSigningKeys(archive, source, clock)
  let generation: number | null = null
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const { list, tag } = await readKeyList(archive)
    generation ??= list.generation + 1
    // Either the response was lost, or another process rotated the key at the same time.
    if (list.generation >= generation) return list.keys.map(asListed)
    const nowMs = clock()
    const [current] = keysOf(source, list.generation)
    const [next] = keysOf(source, generation)
    const stillValid = list.keys.filter(({ to }) => to !== null && Date.parse(to) > nowMs)
    if (stillValid.length >= OLDER_KEYS_MAX) {
      throw new OperatorError(
        `The key was not replaced, because ${stillValid.length} replaced keys still sign. Try again after ${stillValid[0]?.to}.`,
      )
    }
    const keys = [...closeKeys(list, [current], nowMs), openKey(next, nowMs, false)]
    await archive.replace(KEY_LIST, { bytes: writeKeyList({ generation, keys }), tag })
  }
  throw changesTooOften()
}

/** Every key that has signed, the oldest first. */
export async function listSigningKeys(archive: ObjectStore): Promise<ListedSigningKey[]> {
  return (await readKeyList(archive)).list.keys.map(asListed)
}

/** The key changes that are not in every company's audit log yet. */
export async function listUnannounced(archive: ObjectStore): Promise<KeyChange[]> {
  const { keys } = (await readKeyList(archive)).list
  return keys.flatMap(({ publicKey, from, announced }, nth) => {
    const previous = keys[nth - 1]
    return previous && !announced ? [{ publicKey, from, previous: asListed(previous) }] : []
  })
}

export async function markAnnounced(archive: ObjectStore, publicKey: string): Promise<void> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const { list, tag } = await readKeyList(archive)
    const keys = list.keys.map((key) =>
      key.publicKey === publicKey ? { ...key, announced: true } : key,
    )
    const bytes = writeKeyList({ ...list, keys })
    if ((await archive.replace(KEY_LIST, { bytes, tag })) !== null) return
  }
  throw changesTooOften()
}

function keysOf(
  { secretKey, configured, previous }: KeySource,
  generation: number,
): [SigningKey, ...SigningKey[]] {
  if (configured !== null) {
    // Before the first configured key, a derived one signed.
    const derived = signingKeyOf(deriveSeed(secretKey, generation))
    return [signingKeyOf(configured), ...(previous ? [signingKeyOf(previous)] : []), derived]
  }
  const count = Math.min(generation, OLDER_KEYS_MAX)
  const older = Array.from({ length: count }, (_, nth) =>
    signingKeyOf(deriveSeed(secretKey, generation - 1 - nth)),
  )
  return [signingKeyOf(deriveSeed(secretKey, generation)), ...older]
}

function isValid({ keys }: KeyList, key: SigningKey, nowMs: number): boolean {
  const to = keys.find(({ publicKey }) => publicKey === textOf(key))?.to
  return typeof to === 'string' && Date.parse(to) > nowMs
}

function openKey(key: SigningKey, nowMs: number, announced: boolean): StoredKey {
  return { publicKey: textOf(key), from: new Date(nowMs).toISOString(), to: null, announced }
}

/** A key that this node still has signs until the overlap ends. Any other can't sign any more. */
function closeKeys({ keys }: KeyList, kept: readonly SigningKey[], nowMs: number): StoredKey[] {
  const keptKeys = new Set(kept.map(textOf))
  return keys.map((key) => {
    if (key.to !== null) return key
    const toMs = keptKeys.has(key.publicKey) ? nowMs + OVERLAP_MS : nowMs
    return { ...key, to: new Date(toMs).toISOString() }
  })
}

async function readKeyList(archive: ObjectStore): Promise<{ list: KeyList; tag: string | null }> {
  const found = await archive.readTagged(KEY_LIST).catch((error: unknown) => {
    throw error instanceof StorageError && error.isTooLarge ? damagedList(error) : error
  })
  if (found === null) return { list: { generation: 0, keys: [] }, tag: null }
  const list = parseKeyList(found.bytes)
  if (list === null) throw damagedList()
  return { list, tag: found.tag }
}

function damagedList(cause?: StorageError): StorageError {
  const message = `${KEY_LIST} in the archive is damaged. Restore it from a backup.`
  return new StorageError(message, { cause })
}

function writeKeyList({ generation, keys }: KeyList): Buffer {
  return storedJson({ version: VERSION, generation, keys })
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

function parseKey(value: unknown): StoredKey[] {
  if (!isRecord(value)) return []
  const { publicKey, from, to, announced = true } = value
  if (typeof publicKey !== 'string' || typeof from !== 'string') return []
  if (typeof announced !== 'boolean') return []
  return typeof to === 'string' || to === null ? [{ publicKey, from, to, announced }] : []
}

function asListed({ publicKey, from, to }: ListedSigningKey): ListedSigningKey {
  return { publicKey, from, to }
}

const textOf = ({ publicKey }: SigningKey): string => publicKey.toString('base64')

function replacedKey(to: string): StorageError {
  return new StorageError(
    `The signing key of this node was replaced, and has not signed since ${to}. Set the new key on this node. A replaced key can't be used again.`,
  )
}

function changesTooOften(): StorageError {
  return new StorageError(
    `${KEY_LIST} keeps changing. Check that all nodes have the same signing key.`,
  )
}
