import { OperatorError } from '../../../errors.ts'
import { listPublished } from '../../../ledger/tree/checkpoint-store.ts'
import { StorageError } from '../../../platform/object-store/object-store.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import {
  concurrentChangesError,
  inspectKeyList,
  type KeyListDeps,
  type KeySource,
  openKeyList,
  storeKeyList,
} from './key-list-copies.ts'
import { STATES_PREFIX, workspaceOfState } from '../signer-state.ts'
import { deriveSeed, type SigningKey, signingKeyOf, publicKeyText } from '../signing-key.ts'
import type { KeyList, ListedSigningKey, StoredSigningKey } from './stored-key-list.ts'

/** A replaced key signs for this long beside the new one, so that verifiers have time to get the new one. */
const OVERLAP_MS = 30 * DAY_MS
/** More signatures would make every checkpoint and proof longer. */
const OLDER_KEYS_MAX = 3
const TRIES_MAX = 5
/** Enough, because the states of workspaces come before the other objects. */
const STATES_LISTED = 10

/** A new key, and the one that it replaced. `previous` is null if the list was lost, because then it is unknown. */
export type KeyChange = Omit<ListedSigningKey, 'to'> & { previous: ListedSigningKey | null }

/**
 * The keys to sign with now, the current one first. They are listed in the storage of the archive with their
 * times, so that a new key is known to all nodes before it signs anything.
 */
export async function loadSigningKeys(deps: KeyListDeps, clock: Clock): Promise<SigningKey[]> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const opened = await openKeyList(deps)
    const { list } = opened
    const [current, ...others] = keysOf(deps.keySource, list.generation)
    const nowMs = clock()
    const listed = list.keys.find(({ publicKey }) => publicKey === publicKeyText(current))
    if (listed) {
      // Another node already has the new key, which must not be closed again.
      if (listed.to !== null && Date.parse(listed.to) <= nowMs) throw replacedKeyError(listed.to)
      return [current, ...others.filter((key) => isValid(list, key, nowMs))]
    }
    const announced = list.keys.length === 0 && !(await hasSigned(deps))
    const keys = [...closeKeys(list, others, nowMs), openKey(current, nowMs, announced)]
    await storeKeyList(deps, opened, { ...list, keys })
  }
  throw concurrentChangesError()
}

/**
 * Replaces the derived key with that of the next generation. Both sign for 30 days. The caller then announces the
 * change; if it doesn't, the signer does.
 */
export async function rotateDerivedKey(
  deps: KeyListDeps,
  clock: Clock,
): Promise<ListedSigningKey[]> {
  await loadSigningKeys(deps, clock)
  let generation: number | null = null
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const opened = await openKeyList(deps)
    const { list } = opened
    generation ??= list.generation + 1
    // Either the response was lost, or another process rotated the key at the same time.
    if (list.generation >= generation) return list.keys.map(asListed)
    const nowMs = clock()
    const [current] = keysOf(deps.keySource, list.generation)
    const [next] = keysOf(deps.keySource, generation)
    const stillValid = list.keys.filter(({ to }) => to !== null && Date.parse(to) > nowMs)
    if (stillValid.length >= OLDER_KEYS_MAX) {
      throw new OperatorError(
        `The key was not replaced, because ${stillValid.length} replaced keys still sign. Try again after ${stillValid[0]?.to}.`,
      )
    }
    const keys = [...closeKeys(list, [current], nowMs), openKey(next, nowMs, false)]
    await storeKeyList(deps, opened, { generation, keys })
  }
  throw concurrentChangesError()
}

/**
 * How the key of this node relates to the keys that sign. `new`: a start would replace `replaced`, which then signs
 * for 30 days only if this node has it. `replaced`: nothing can be signed with it any more.
 */
export type SigningKeyStatus =
  | { kind: 'unused' | 'current' }
  | { kind: 'new'; isPreviousKnown: boolean }
  | { kind: 'replaced'; to: string }
  | { kind: 'overlap'; to: string }

/** Reads the list like a start, and changes nothing. `problem` says what is wrong with the list itself. */
export async function inspectSigningKey(
  deps: Omit<KeyListDeps, 'logger'>,
  clock: Clock,
): Promise<{ status: SigningKeyStatus; problem: string | null }> {
  const { list, problem } = await inspectKeyList(deps)
  return { status: statusOf(list, keysOf(deps.keySource, list.generation), clock()), problem }
}

function statusOf(
  list: KeyList,
  [current, ...others]: [SigningKey, ...SigningKey[]],
  nowMs: number,
): SigningKeyStatus {
  if (list.keys.length === 0) return { kind: 'unused' }
  const own = new Set([current, ...others].map(publicKeyText))
  const listed = list.keys.find(({ publicKey }) => publicKey === publicKeyText(current))
  if (!listed) {
    const open = list.keys.filter(({ to }) => to === null)
    return { kind: 'new', isPreviousKnown: open.every(({ publicKey }) => own.has(publicKey)) }
  }
  if (listed.to !== null && Date.parse(listed.to) <= nowMs) {
    return { kind: 'replaced', to: listed.to }
  }
  const missing = list.keys.find(
    ({ publicKey, to }) => to !== null && Date.parse(to) > nowMs && !own.has(publicKey),
  )
  return missing?.to ? { kind: 'overlap', to: missing.to } : { kind: 'current' }
}

/** Every key that has signed, the oldest first. */
export async function listSigningKeys(deps: KeyListDeps): Promise<ListedSigningKey[]> {
  return (await openKeyList(deps)).list.keys.map(asListed)
}

/** The key changes that are not in every company's audit log yet. */
export async function listUnannounced(deps: KeyListDeps): Promise<KeyChange[]> {
  const { keys } = (await openKeyList(deps)).list
  return keys.flatMap(({ publicKey, from, announced }, nth) => {
    const previous = keys[nth - 1]
    return announced ? [] : [{ publicKey, from, previous: previous ? asListed(previous) : null }]
  })
}

export async function markAnnounced(deps: KeyListDeps, publicKey: string): Promise<void> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const opened = await openKeyList(deps)
    const { list } = opened
    if (!list.keys.some((key) => key.publicKey === publicKey && !key.announced)) return
    const keys = list.keys.map((key) =>
      key.publicKey === publicKey ? { ...key, announced: true } : key,
    )
    if (await storeKeyList(deps, opened, { ...list, keys })) return
  }
  throw concurrentChangesError()
}

/** Whether something was signed before, so that a list must have existed. */
async function hasSigned({ db, archive }: KeyListDeps): Promise<boolean> {
  if ((await listPublished(db, { afterId: null, limit: 1 })).length > 0) return true
  try {
    const { keys } = await archive.list(STATES_PREFIX, { cursor: null, limit: STATES_LISTED })
    return keys.some((key) => workspaceOfState(key) !== null)
  } catch (error) {
    if (error instanceof StorageError && error.isDenied) return false
    throw error
  }
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
  const to = keys.find(({ publicKey }) => publicKey === publicKeyText(key))?.to
  return typeof to === 'string' && Date.parse(to) > nowMs
}

function openKey(key: SigningKey, nowMs: number, announced: boolean): StoredSigningKey {
  return { publicKey: publicKeyText(key), from: new Date(nowMs).toISOString(), to: null, announced }
}

/** A key that this node still has signs until the overlap ends. Any other can't sign any more. */
function closeKeys(
  { keys }: KeyList,
  kept: readonly SigningKey[],
  nowMs: number,
): StoredSigningKey[] {
  const keptKeys = new Set(kept.map(publicKeyText))
  return keys.map((key) => {
    if (key.to !== null) return key
    const toMs = keptKeys.has(key.publicKey) ? nowMs + OVERLAP_MS : nowMs
    return { ...key, to: new Date(toMs).toISOString() }
  })
}

function asListed({ publicKey, from, to }: ListedSigningKey): ListedSigningKey {
  return { publicKey, from, to }
}

function replacedKeyError(to: string): StorageError {
  return new StorageError(
    `The signing key of this node was replaced, and has not signed since ${to}. Set the new key on this node. A replaced key can't be used again.`,
  )
}
