import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../../../platform/secret/secret.ts'
import { isRecord, parseStoredObject, storedJson } from '../stored-json.ts'

const VERSION = 1
/** Canonical base64 of 32 bytes: the unused bits of the last character are zero. */
const PUBLIC_KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/** Reading the secret key can create a file, so it is read only if there is a list. */
type Authenticator = { readonly secretKey: Secret<Buffer> }

/** A key that has signed checkpoints. `to` is null for the current one. */
export type ListedSigningKey = { publicKey: string; from: string; to: string | null }

/** `announced` is false until all companies have an audit entry about the key. */
export type StoredSigningKey = ListedSigningKey & { announced: boolean }

export type KeyList = {
  /** Grows with each change, so it shows which of two copies is newer. */
  number: number
  /** The generation of the derived key. */
  generation: number
  keys: StoredSigningKey[]
}

/**
 * What a copy of the list contains. `unauthenticated`: written by a version without codes. `forged`: the code is
 * not one that the secret key creates for this content.
 */
export type StoredKeyList =
  | { kind: 'authentic' | 'unauthenticated' | 'forged'; list: KeyList }
  | { kind: 'missing' | 'damaged' }

/** The same content always has the same bytes. */
export function writeKeyList(list: KeyList, authenticator: Authenticator): Buffer {
  const { number, generation, keys } = list
  const mac = macOf(list, authenticator).toString('base64')
  return storedJson({ version: VERSION, number, generation, keys, mac })
}

export function parseKeyList(bytes: Buffer | null, authenticator: Authenticator): StoredKeyList {
  if (bytes === null) return { kind: 'missing' }
  const value = parseStoredObject(bytes)
  if (value?.['version'] !== VERSION) return { kind: 'damaged' }
  const { number, generation, keys, mac } = value
  if (!isCount(generation) || !Array.isArray(keys)) return { kind: 'damaged' }
  const parsed = keys.flatMap(parseKey)
  if (parsed.length !== keys.length) return { kind: 'damaged' }
  if (number === undefined && mac === undefined) {
    return { kind: 'unauthenticated', list: { number: 0, generation, keys: parsed } }
  }
  if (!isCount(number) || typeof mac !== 'string') return { kind: 'damaged' }
  const list = { number, generation, keys: parsed }
  const given = Buffer.from(mac, 'base64')
  const expected = macOf(list, authenticator)
  const isAuthentic = given.length === expected.length && timingSafeEqual(given, expected)
  return { kind: isAuthentic ? 'authentic' : 'forged', list }
}

function macOf({ number, generation, keys }: KeyList, { secretKey }: Authenticator): Buffer {
  const info = 'annals/signing-key-list'
  const key = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, 32))
  const rows = keys.map(({ publicKey, from, to, announced }) => [publicKey, from, to, announced])
  return createHmac('sha256', key)
    .update(JSON.stringify([VERSION, number, generation, rows]))
    .digest()
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function parseKey(value: unknown): StoredSigningKey[] {
  if (!isRecord(value)) return []
  const { publicKey, from, to, announced = true } = value
  if (!isPublicKey(publicKey) || !isTime(from)) return []
  if (typeof announced !== 'boolean') return []
  return isTime(to) || to === null ? [{ publicKey, from, to, announced }] : []
}

/** Operators compare keys by eye, so each has only one form, and nothing else is one. */
function isPublicKey(value: unknown): value is string {
  return typeof value === 'string' && PUBLIC_KEY.test(value)
}

/** Only in the form in which lists are written. */
function isTime(value: unknown): value is string {
  if (typeof value !== 'string') return false
  const time = new Date(value)
  return !Number.isNaN(time.getTime()) && time.toISOString() === value
}
