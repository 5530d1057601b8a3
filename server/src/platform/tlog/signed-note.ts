import { createPublicKey, hash, verify } from 'node:crypto'

/*
 * Signed notes of C2SP, in which transparency logs publish checkpoints and witnesses cosign them. What other
 * people send is parsed here, so everything is bounded and nothing is repaired.
 */

/** The signature types of C2SP for Ed25519 keys. */
export const LOG_SIGNATURE = 1
export const COSIGNATURE = 4

export type NoteKey = {
  name: string
  type: typeof LOG_SIGNATURE | typeof COSIGNATURE
  /** 32 bytes. */
  publicKey: Buffer
}

type NoteSignature = { name: string; keyId: string; bytes: Buffer }

export type SignedCheckpoint = {
  /** What is signed, with its last line break. */
  body: string
  origin: string
  size: number
  root: Buffer
  signatures: readonly NoteSignature[]
}

const KEY_BYTES = 32
const HASH_BYTES = 32
const KEY_ID_BYTES = 4
const TIME_BYTES = 8
const SIGNATURE_BYTES = 64
const SIGNATURES_MAX = 100
/** The DER encoding of an Ed25519 public key (RFC 8410) is this prefix and the key. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
/** Control characters except the line break, and the character that stands for bytes that are not UTF-8. */
const UNPRINTABLE = /[^\P{Cc}\n\u0080-\u009f]|\ufffd/u
const SIZE = /^(?:0|[1-9]\d{0,15})$/
const SIGNATURE_LINE = /^— ([^\s+]{1,512}) ([A-Za-z0-9+/]+={0,2})$/u
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Returns null if the text is not a signed checkpoint. */
export function parseCheckpoint(text: string): SignedCheckpoint | null {
  const end = text.lastIndexOf('\n\n')
  if (end < 0 || !text.endsWith('\n') || UNPRINTABLE.test(text)) return null
  const body = text.slice(0, end + 1)
  const [origin = '', size = '', root = '', ...extensions] = body.slice(0, -1).split('\n')
  const rootBytes = decodeBase64(root)
  if (origin === '' || !SIZE.test(size) || !Number.isSafeInteger(Number(size))) return null
  if (rootBytes?.length !== HASH_BYTES || extensions.includes('')) return null
  const lines = text.slice(end + 2, -1).split('\n')
  const signatures = lines.slice(0, SIGNATURES_MAX + 1).flatMap(parseSignature)
  if (signatures.length !== lines.length || lines.length > SIGNATURES_MAX) return null
  return { body, origin, size: Number(size), root: rootBytes, signatures }
}

function parseSignature(line: string): NoteSignature[] {
  const [, name, text = ''] = SIGNATURE_LINE.exec(line) ?? []
  const bytes = decodeBase64(text)
  if (name === undefined || bytes === null || bytes.length <= KEY_ID_BYTES) return []
  const keyId = bytes.toString('hex', 0, KEY_ID_BYTES)
  return [{ name, keyId, bytes: bytes.subarray(KEY_ID_BYTES) }]
}

/** Returns null if the text isn't base64 with padding, in its only spelling. */
export function decodeBase64(text: string): Buffer | null {
  if (!BASE64.test(text)) return null
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : null
}

/** Which of all signatures is that of a key. */
export function keyIdOf({ name, type, publicKey }: NoteKey): string {
  const digest = hash(
    'sha256',
    Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(type), publicKey]),
    'hex',
  )
  return digest.slice(0, 2 * KEY_ID_BYTES)
}

/** The text by which people give a key to a verifier. */
export function noteKeyText(key: NoteKey): string {
  const bytes = Buffer.concat([Buffer.of(key.type), key.publicKey])
  return `${key.name}+${keyIdOf(key)}+${bytes.toString('base64')}`
}

/** Returns null if the text is not a key that this program knows how to use. */
export function parseNoteKey(text: string): NoteKey | null {
  const [, name = '', keyId, encoded = ''] =
    /^([^\s+]{1,512})\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? []
  const bytes = decodeBase64(encoded)
  if (bytes?.length !== 1 + KEY_BYTES) return null
  const type = [LOG_SIGNATURE, COSIGNATURE].find((known) => known === bytes[0])
  if (type !== LOG_SIGNATURE && type !== COSIGNATURE) return null
  const key: NoteKey = { name, type, publicKey: bytes.subarray(1) }
  return keyIdOf(key) === keyId ? key : null
}

/** `forged` if a signature names the key but isn't valid. */
export function checkNoteSignature(
  checkpoint: SignedCheckpoint,
  key: NoteKey,
): 'valid' | 'missing' | 'forged' {
  const keyId = keyIdOf(key)
  const own = checkpoint.signatures.filter(
    (signature) => signature.name === key.name && signature.keyId === keyId,
  )
  if (own.length === 0) return 'missing'
  return own.every(({ bytes }) => isValid(checkpoint.body, key, bytes)) ? 'valid' : 'forged'
}

/**
 * Whether a note says the same as the checkpoint it belongs to (`changed` if not), and is signed with a key of the
 * log (`unsigned` if not, or if the signature of one of them is forged).
 */
export function checkLogNote(
  { origin, size, root, note }: { origin: string; size: number; root: Buffer; note: string },
  publicKeys: readonly Buffer[],
): 'valid' | 'changed' | 'unsigned' {
  const parsed = parseCheckpoint(note)
  const isSame = parsed?.origin === origin && parsed.size === size && parsed.root.equals(root)
  if (!isSame) return 'changed'
  const verdicts = publicKeys.map((publicKey) =>
    checkNoteSignature(parsed, { name: origin, type: LOG_SIGNATURE, publicKey }),
  )
  return verdicts.includes('valid') && !verdicts.includes('forged') ? 'valid' : 'unsigned'
}

function isValid(body: string, { type, publicKey }: NoteKey, bytes: Buffer): boolean {
  const timeBytes = type === COSIGNATURE ? TIME_BYTES : 0
  if (bytes.length !== timeBytes + SIGNATURE_BYTES) return false
  const message =
    type === COSIGNATURE ? cosignedText(body, bytes.readBigUInt64BE(0)) : Buffer.from(body)
  const key = createPublicKey({
    key: Buffer.concat([SPKI_PREFIX, publicKey]),
    format: 'der',
    type: 'spki',
  })
  return verify(null, message, key, bytes.subarray(timeBytes))
}

/** What a witness signs at a time in seconds. */
function cosignedText(body: string, seconds: bigint): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${seconds}\n${body}`)
}

/** The line that a witness adds to a checkpoint. */
export function cosign(
  { body }: SignedCheckpoint,
  { sign, ...key }: Omit<NoteKey, 'type'> & { sign: (bytes: Buffer) => Buffer },
  nowMs: number,
): string {
  const seconds = BigInt(Math.floor(nowMs / 1_000))
  const time = Buffer.alloc(TIME_BYTES)
  time.writeBigUInt64BE(seconds)
  const keyId = Buffer.from(keyIdOf({ ...key, type: COSIGNATURE }), 'hex')
  const bytes = Buffer.concat([keyId, time, sign(cosignedText(body, seconds))])
  return `— ${key.name} ${bytes.toString('base64')}\n`
}

/**
 * The valid cosignature of this key among the lines that a witness returned for a checkpoint, as a single line.
 * Null if there is none, or if anything else is not a signature line.
 */
export function findCosignature(note: string, lines: string, key: NoteKey): string | null {
  const checkpoint = lines.endsWith('\n') ? parseCheckpoint(`${note}${lines}`) : null
  if (checkpoint === null || checkNoteSignature(checkpoint, key) !== 'valid') return null
  const keyId = keyIdOf(key)
  const own = checkpoint.signatures.find(
    (signature) => signature.name === key.name && signature.keyId === keyId,
  )
  // A cosignature without a time doesn't say when the witness saw the log.
  if (own === undefined || own.bytes.readBigUInt64BE(0) === 0n) return null
  const bytes = Buffer.concat([Buffer.from(keyId, 'hex'), own.bytes])
  return `— ${key.name} ${bytes.toString('base64')}\n`
}
