import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, hash, hkdfSync, sign } from 'node:crypto'
import { Secret } from '../../platform/secret/secret.ts'

const KEY_BYTES = 32
/** The DER encoding of an Ed25519 private key (RFC 8410) is this prefix and the seed. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
/** The signature type of Ed25519 in C2SP signed-note. */
const ED25519 = Buffer.of(1)

/** An Ed25519 key that signs the checkpoints of all workspaces. */
export type SigningKey = {
  /** 32 bytes. */
  publicKey: Buffer
  sign: (text: string) => Buffer
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
  return { publicKey, sign: (text) => sign(null, Buffer.from(text), key) }
}

/** The seed of a node without `ANNALS_SIGNING_KEY`. Each rotation starts the next generation. */
export function deriveSeed(secretKey: Secret<Buffer>, generation: number): Secret<Buffer> {
  const info = `annals/signing-key/${generation}`
  return new Secret(Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, KEY_BYTES)))
}

/** The name of a key is the origin of the log that it signs, so each workspace has its own key ID. */
function keyIdOf(name: string, publicKey: Buffer): Buffer {
  const input = Buffer.concat([Buffer.from(`${name}\n`), ED25519, publicKey])
  return hash('sha256', input, 'buffer').subarray(0, 4)
}

/** The verifier key of C2SP signed-note: what a verifier must know. */
export function vkeyOf(name: string, publicKey: Buffer): string {
  const material = Buffer.concat([ED25519, publicKey]).toString('base64')
  return `${name}+${keyIdOf(name, publicKey).toString('hex')}+${material}`
}

/** A C2SP tlog-checkpoint, signed with each of these keys. */
export function signCheckpoint(
  { origin, size, root }: { origin: string; size: number; root: Buffer },
  keys: readonly SigningKey[],
): string {
  assert(keys.length > 0, 'a checkpoint is signed')
  const text = `${origin}\n${size}\n${root.toString('base64')}\n`
  const signatures = keys.map((key) => {
    const signature = Buffer.concat([keyIdOf(origin, key.publicKey), key.sign(text)])
    return `— ${origin} ${signature.toString('base64')}\n`
  })
  return `${text}\n${signatures.join('')}`
}
