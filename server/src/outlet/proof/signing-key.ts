import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, hkdfSync, sign } from 'node:crypto'
import { Secret } from '../../platform/secret/secret.ts'
import { keyIdOf, LOG_SIGNATURE, noteKeyText } from '../../platform/tlog/signed-note.ts'

const KEY_BYTES = 32
/** The DER encoding of an Ed25519 private key (RFC 8410) is this prefix and the seed. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** An Ed25519 key that signs the checkpoints of all workspaces. */
export type SigningKey = {
  /** 32 bytes. */
  publicKey: Buffer
  sign: (message: string | Buffer) => Buffer
}

export function signingKeyOf(seed: Secret<Buffer>): SigningKey {
  assert(seed.reveal().length === KEY_BYTES, 'a seed has 32 bytes')
  const key = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, seed.reveal()]),
    format: 'der',
    type: 'pkcs8',
  })
  const publicKey = createPublicKey(key)
    .export({ format: 'der', type: 'spki' })
    .subarray(-KEY_BYTES)
  return { publicKey, sign: (message) => sign(null, Buffer.from(message), key) }
}

/** The text of a public key, everywhere except in notes. */
export function publicKeyText({ publicKey }: SigningKey): string {
  return publicKey.toString('base64')
}

/** The seed of a node without `ANNALS_SIGNING_KEY`. Each rotation starts the next generation. */
export function deriveSeed(secretKey: Secret<Buffer>, generation: number): Secret<Buffer> {
  const info = `annals/signing-key/${generation}`
  return new Secret(Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, KEY_BYTES)))
}

/**
 * The verifier key of C2SP signed-note: what a verifier must know. The name of a key is the origin of the log that
 * it signs, so each workspace has its own key ID.
 */
export function vkeyOf(name: string, publicKey: Buffer): string {
  return noteKeyText({ name, type: LOG_SIGNATURE, publicKey })
}

/** A C2SP tlog-checkpoint, signed with each of these keys. */
export function signCheckpoint(
  { origin, size, root }: { origin: string; size: number; root: Buffer },
  keys: readonly SigningKey[],
): string {
  assert(keys.length > 0, 'a checkpoint is signed')
  const text = `${origin}\n${size}\n${root.toString('base64')}\n`
  const signatures = keys.map((key) => {
    const keyId = keyIdOf({ name: origin, type: LOG_SIGNATURE, publicKey: key.publicKey })
    const signature = Buffer.concat([Buffer.from(keyId, 'hex'), key.sign(text)])
    return `— ${origin} ${signature.toString('base64')}\n`
  })
  return `${text}\n${signatures.join('')}`
}
