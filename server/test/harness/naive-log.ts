import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/**
 * A transparency log as RFC 6962 and C2SP define it, written as literally as possible, so that it can judge
 * faster implementations.
 */

/** MTH of RFC 6962, section 2.1, over leaf hashes. */
export function treeRoot(leaves: readonly Buffer[]): Buffer {
  const [leaf] = leaves
  if (leaf === undefined) return digest()
  if (leaves.length === 1) return leaf
  const split = splitOf(leaves.length)
  return innerHash(treeRoot(leaves.slice(0, split)), treeRoot(leaves.slice(split)))
}

/** PATH(m, D[n]) of section 2.1.1. */
export function inclusionPath(index: number, leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length <= 1) return []
  const split = splitOf(leaves.length)
  const left = leaves.slice(0, split)
  const right = leaves.slice(split)
  if (index < split) return [...inclusionPath(index, left), treeRoot(right)]
  return [...inclusionPath(index - split, right), treeRoot(left)]
}

/** PROOF(m, D[n]) of section 2.1.2. */
export function consistencyPath(size: number, leaves: readonly Buffer[]): Buffer[] {
  return size === 0 ? [] : subproof(size, leaves, true)
}

function subproof(size: number, leaves: readonly Buffer[], isComplete: boolean): Buffer[] {
  if (size === leaves.length) return isComplete ? [] : [treeRoot(leaves)]
  const split = splitOf(leaves.length)
  const left = leaves.slice(0, split)
  const right = leaves.slice(split)
  if (size <= split) return [...subproof(size, left, isComplete), treeRoot(right)]
  return [...subproof(size - split, right, false), treeRoot(left)]
}

/** The largest power of two that is smaller than the size. */
function splitOf(size: number): number {
  let split = 1
  while (split * 2 < size) split *= 2
  return split
}

function innerHash(left: Buffer, right: Buffer): Buffer {
  return digest(Buffer.from([1]), left, right)
}

function digest(...parts: readonly (Buffer | string)[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export function base64(hashes: readonly Buffer[]): string[] {
  return hashes.map((hash) => hash.toString('base64'))
}

export type NoteKey = { name: string; vkey: string; signatureOf: (text: string) => string }

/** An Ed25519 key of c2sp.org/signed-note. */
export function createNoteKey(name: string): NoteKey {
  const { privateKey, id, vkey } = createKey(name, 1)
  return {
    name,
    vkey,
    signatureOf: (text) => signatureLine(name, [id, sign(null, Buffer.from(text), privateKey)]),
  }
}

/** A witness of c2sp.org/tlog-cosignature that signs at the given second. */
export function createWitnessKey(name: string, atSeconds: number): NoteKey {
  const { privateKey, id, vkey } = createKey(name, 4)
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(BigInt(atSeconds))
  return {
    name,
    vkey,
    signatureOf: (text) => {
      const message = Buffer.from(`cosignature/v1\ntime ${atSeconds}\n${text}`)
      return signatureLine(name, [id, time, sign(null, message, privateKey)])
    },
  }
}

function createKey(
  name: string,
  type: number,
): { privateKey: KeyObject; id: Buffer; vkey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const material = Buffer.concat([Buffer.from([type]), raw])
  const id = digest(`${name}\n`, material).subarray(0, 4)
  return { privateKey, id, vkey: `${name}+${id.toString('hex')}+${material.toString('base64')}` }
}

function signatureLine(name: string, parts: readonly Buffer[]): string {
  return `— ${name} ${Buffer.concat(parts).toString('base64')}\n`
}

export function signNote(text: string, keys: readonly NoteKey[]): string {
  return `${text}\n${keys.map(({ signatureOf }) => signatureOf(text)).join('')}`
}

/** A c2sp.org/tlog-checkpoint of the leaves, whose origin is the name of the first key. */
export function signCheckpoint(leaves: readonly Buffer[], keys: readonly NoteKey[]): string {
  const root = treeRoot(leaves).toString('base64')
  return signNote(`${keys[0]?.name}\n${leaves.length}\n${root}\n`, keys)
}
