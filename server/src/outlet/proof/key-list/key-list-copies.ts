import { isDeepStrictEqual } from 'node:util'
import { OperatorError } from '../../../errors.ts'
import type { Logger } from '../../../platform/logger.ts'
import { type ObjectStore, StorageError } from '../../../platform/object-store/object-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Secret } from '../../../platform/secret/secret.ts'
import { readKeyListCopy, replaceKeyListCopy } from './key-list-store.ts'
import { readUnlessLarge } from '../signer-state.ts'
import { deriveSeed, signingKeyOf, publicKeyText } from '../signing-key.ts'
import { type KeyList, parseKeyList, type StoredKeyList, writeKeyList } from './stored-key-list.ts'

const KEY_LIST = 'signer/keys'
const TRIES_MAX = 5
const NO_KEYS: KeyList = { number: 0, generation: 0, keys: [] }

/** Where the keys of this node come from. */
export type KeySource = {
  /** Also authenticates the list of keys. */
  readonly secretKey: Secret<Buffer>
  /** `ANNALS_SIGNING_KEY` and `ANNALS_SIGNING_KEY_PREVIOUS`, instead of keys derived from the secret key. */
  configured: Secret<Buffer> | null
  previous: Secret<Buffer> | null
}

export type KeyListDeps = {
  db: Queryable
  archive: ObjectStore
  keySource: KeySource
  logger: Logger
}

/** The object in the archive and the copy in the database, as they are. */
type Copies = {
  object: StoredKeyList
  tag: string | null
  isTooLarge: boolean
  row: StoredKeyList
  text: string | null
}

/** The list to use, or null if there is none yet, and what is wrong with either copy of it. */
type Judgment = { list: KeyList | null; objectProblem: string | null; rowProblem: string | null }

type OpenKeyList = Pick<Copies, 'tag' | 'text'> & { list: KeyList }

/**
 * Reads the newest authentic list. The object in the archive decides between two writers, and the database has a copy.
 * If one of them is missing, older or not authentic, it is replaced with the other one before the list is used. So
 * neither the archive nor the database alone can bring back an older list.
 */
export async function openKeyList(deps: KeyListDeps): Promise<OpenKeyList> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const copies = await readCopies(deps)
    const { list, ...problems } = judgeCopies(copies, deps.keySource)
    const { tag, text } = copies
    if (list === null) return { list: NO_KEYS, tag, text }
    if (problems.objectProblem === null && problems.rowProblem === null) return { list, tag, text }
    logProblems(deps.logger, { list, ...problems }, copies)
    await repairCopies(deps, copies, { list, ...problems })
  }
  throw concurrentChangesError()
}

/** Returns false if another process changed the list meanwhile. Then read it again. */
export async function storeKeyList(
  { db, archive, keySource }: KeyListDeps,
  { list, tag, text }: OpenKeyList,
  { generation, keys }: Pick<KeyList, 'generation' | 'keys'>,
): Promise<boolean> {
  const next = { number: list.number + 1, generation, keys }
  const bytes = writeKeyList(next, keySource)
  if ((await archive.replace(KEY_LIST, { bytes, tag })) === null) return false
  return await replaceKeyListCopy(db, { from: text, to: bytes.toString() })
}

/**
 * What is wrong with the stored copies, as part of a sentence, or null. Changes nothing. A copy in the database that is
 * missing or older is no problem: that happens after a restore, and a node writes the copy again.
 */
export async function inspectKeyList(
  deps: Omit<KeyListDeps, 'logger'>,
): Promise<{ list: KeyList; problem: string | null }> {
  const copies = await readCopies(deps)
  const { list, objectProblem, rowProblem } = judgeCopies(copies, deps.keySource)
  const isReplaced = !['missing', 'authentic'].includes(copies.row.kind)
  let problem: string | null = null
  if (isReplaced) problem = `its copy in the database ${rowProblem}`
  const isAdoptable = copies.object.kind === 'unauthenticated' && copies.row.kind === 'missing'
  if (objectProblem !== null && !isAdoptable) {
    problem = `the object ${KEY_LIST} in the archive ${objectProblem}`
  }
  return { list: list ?? NO_KEYS, problem }
}

/**
 * Authenticates the list with a new secret key, when the operator changes the key. Nothing else can tell whether the
 * list is intact, so if there are two copies, they must be equal. Returns null if there is nothing to do.
 */
export async function acceptKeyList({
  keySource,
  ...stores
}: Omit<KeyListDeps, 'logger'>): Promise<KeyList | null> {
  const deps = { ...stores, keySource }
  const { object, row, tag, text } = await readCopies(deps)
  const copies = [object, row].filter(({ kind }) => kind !== 'missing')
  if (copies.length === 0 || copies.some(({ kind }) => kind === 'authentic')) return null
  const [list, ...others] = copies.flatMap((copy) => ('list' in copy ? [copy.list] : []))
  const isDamaged = !list || copies.some(({ kind }) => kind === 'damaged')
  if (isDamaged || !others.every((other) => isDeepStrictEqual(other, list))) {
    const fault = isDamaged
      ? `${KEY_LIST} in the archive or its copy in the database is damaged`
      : `${KEY_LIST} in the archive and its copy in the database are not the same`
    throw new OperatorError(
      `The list of signing keys was not accepted, because ${fault}. Restore ${KEY_LIST} from a backup, and run the command again.`,
    )
  }
  const bytes = writeKeyList({ ...list, number: list.number + 1 }, keySource)
  const isStored =
    (await stores.archive.replace(KEY_LIST, { bytes, tag })) !== null &&
    (await replaceKeyListCopy(stores.db, { from: text, to: bytes.toString() }))
  if (!isStored) throw concurrentChangesError()
  return list
}

/** Reads the copy first: writers start with the object, so it is never older than a copy that was read before it. */
async function readCopies({
  db,
  archive,
  keySource,
}: Omit<KeyListDeps, 'logger'>): Promise<Copies> {
  const text = await readKeyListCopy(db)
  const row = parseKeyList(text === null ? null : Buffer.from(text), keySource)
  const found = await readUnlessLarge(archive, KEY_LIST)
  if (found === 'too large') {
    return { object: { kind: 'damaged' }, tag: null, isTooLarge: true, row, text }
  }
  const object = parseKeyList(found && found.bytes, keySource)
  return { object, tag: found && found.tag, isTooLarge: false, row, text }
}

function judgeCopies({ object, row }: Copies, source: KeySource): Judgment {
  if (object.kind === 'missing' && row.kind === 'missing') {
    return { list: null, objectProblem: null, rowProblem: null }
  }
  // If two lists have the same number, the object was rolled back during a change, and no node has used its list.
  const isObjectNewer =
    object.kind === 'authentic' &&
    (row.kind !== 'authentic' || object.list.number > row.list.number)
  const newest = isObjectNewer ? object : row
  if (newest.kind === 'authentic') {
    const { list } = newest
    const [objectProblem, rowProblem] = [problemOf(object, list), problemOf(row, list)]
    return { list, objectProblem, rowProblem }
  }
  if (object.kind !== 'unauthenticated' || row.kind !== 'missing') throw unusableError(object, row)
  return acceptUnauthenticated(object.list, source)
}

/**
 * Accepts a list from a version without authentication codes, and adds one. The list is trusted only if this node has
 * all listed keys itself.
 */
function acceptUnauthenticated({ generation, keys }: KeyList, source: KeySource): Judgment {
  const list = { number: 1, generation, keys }
  const own = new Set(ownKeys(source, Math.min(generation, keys.length)))
  const foreign = keys.find(({ publicKey }) => !own.has(publicKey))
  if (foreign || generation >= keys.length) {
    throw new StorageError(
      `${KEY_LIST} in the archive has no authentication code, and ${foreign ? `lists the key ${foreign.publicKey}, which is not a key of this node` : 'lists too few keys'}. Check the listed keys. To accept them, run "annals secret-key accept".`,
    )
  }
  return { list, objectProblem: 'has no authentication code', rowProblem: 'is missing' }
}

/** The public keys that this node can sign with, or could before a rotation. */
function ownKeys({ secretKey, configured, previous }: KeySource, generation: number): string[] {
  const derived = Array.from({ length: generation + 1 }, (_, nth) => deriveSeed(secretKey, nth))
  const seeds = [...derived, ...(configured ? [configured] : []), ...(previous ? [previous] : [])]
  return seeds.map((seed) => publicKeyText(signingKeyOf(seed)))
}

/** As part of a sentence about the copy. Null if it contains exactly this list. */
function problemOf(copy: StoredKeyList, list: KeyList): string | null {
  switch (copy.kind) {
    case 'missing':
      return 'is missing'
    case 'damaged':
      return 'is damaged'
    case 'unauthenticated':
      return 'has no authentication code'
    case 'forged':
      return 'was not written with this secret key'
    case 'authentic':
      if (copy.list.number < list.number) return 'is older than the newest list'
      return isDeepStrictEqual(copy.list, list) ? null : 'is not the newest list'
    default:
      return copy satisfies never
  }
}

async function repairCopies(
  { db, archive, keySource }: KeyListDeps,
  { tag, isTooLarge, text }: Copies,
  { list, objectProblem, rowProblem }: Judgment & { list: KeyList },
): Promise<void> {
  const bytes = writeKeyList(list, keySource)
  if (objectProblem !== null) {
    // Such an object has no tag. If this overwrites a newer list, its writer notices and repeats its change.
    if (isTooLarge) await archive.put(KEY_LIST, bytes)
    else if ((await archive.replace(KEY_LIST, { bytes, tag })) === null) return
  }
  if (rowProblem !== null) await replaceKeyListCopy(db, { from: text, to: bytes.toString() })
}

function logProblems(
  logger: Logger,
  { list, objectProblem, rowProblem }: Judgment & { list: KeyList },
  { object, row }: Copies,
): void {
  const { number, keys } = list
  if (object.kind === 'unauthenticated' && row.kind === 'missing') {
    const publicKeys = keys.map(({ publicKey }) => publicKey)
    logger.warn({ event: 'signer.keys-adopted', publicKeys })
    return
  }
  const action = 'Follow docs/operations.md, section "The list of signing keys was changed".'
  if (objectProblem !== null) {
    const problem = `the object ${KEY_LIST} in the archive ${objectProblem}`
    logger.error({ event: 'signer.keys-refused', problem, number, action })
  }
  // If the copy is one change behind, another node is changing the list, or was interrupted.
  const rowNumber = row.kind === 'authentic' ? row.list.number : 0
  const isNext = ['authentic', 'missing'].includes(row.kind) && rowNumber === number - 1
  if (rowProblem !== null && !isNext) {
    const problem = `the copy of ${KEY_LIST} in the database ${rowProblem}`
    logger.error({ event: 'signer.keys-refused', problem, number, action })
  }
}

function unusableError(object: StoredKeyList, row: StoredKeyList): StorageError {
  const [objectText, rowText] = [problemOf(object, NO_KEYS), problemOf(row, NO_KEYS)]
  return new StorageError(
    `The list of signing keys can't be used, so nothing is signed: ${KEY_LIST} in the archive ${objectText}, and its copy in the database ${rowText}. Restore ${KEY_LIST} from a backup. If you changed the secret key, run "annals secret-key accept" again.`,
  )
}

export function concurrentChangesError(): StorageError {
  return new StorageError(
    `${KEY_LIST} keeps changing. Check that all nodes have the same signing key.`,
  )
}
