import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/**
 * A transparency log as RFC 6962 and C2SP define it, written as literally as possible, so that it can judge
 * faster implementations.
 */

/** MTH(D[start:end]) of RFC 6962, section 2.1, where D are leaf hashes. */
export function treeRoot(leaves: readonly Buffer[], start = 0, end = leaves.length): Buffer {
  const [leaf] = leaves.slice(start, start + 1)
  if (leaf === undefined || start === end) return digest()
  if (end - start === 1) return leaf
  const known = rootsOf(leaves)
  const root = known.get(`${start} ${end}`) ?? innerRoot(leaves, start, end)
  known.set(`${start} ${end}`, root)
  return root
}

function innerRoot(leaves: readonly Buffer[], start: number, end: number): Buffer {
  const split = start + splitOf(end - start)
  return digest(Buffer.from([1]), treeRoot(leaves, start, split), treeRoot(leaves, split, end))
}

const rootsOfLeaves = new WeakMap<readonly Buffer[], Map<string, Buffer>>()

/** Subtrees are in many trees, so their roots are computed once. */
function rootsOf(leaves: readonly Buffer[]): Map<string, Buffer> {
  const roots = rootsOfLeaves.get(leaves) ?? new Map<string, Buffer>()
  rootsOfLeaves.set(leaves, roots)
  return roots
}

/** PATH(index, D[start:end]) of section 2.1.1, where the index counts from the start. */
export function inclusionPath(
  index: number,
  leaves: readonly Buffer[],
  start = 0,
  end = leaves.length,
): Buffer[] {
  if (end - start <= 1) return []
  const length = splitOf(end - start)
  const split = start + length
  if (index < length) {
    return [...inclusionPath(index, leaves, start, split), treeRoot(leaves, split, end)]
  }
  return [...inclusionPath(index - length, leaves, split, end), treeRoot(leaves, start, split)]
}

/** PROOF(size, D[0:end]) of section 2.1.2. */
export function consistencyPath(
  size: number,
  leaves: readonly Buffer[],
  end = leaves.length,
): Buffer[] {
  return size === 0 ? [] : subproof(size, leaves, [0, end], true)
}

function subproof(
  size: number,
  leaves: readonly Buffer[],
  [start, end]: readonly [number, number],
  isComplete: boolean,
): Buffer[] {
  if (size === end - start) return isComplete ? [] : [treeRoot(leaves, start, end)]
  const length = splitOf(end - start)
  const split = start + length
  if (size <= length) {
    return [...subproof(size, leaves, [start, split], isComplete), treeRoot(leaves, split, end)]
  }
  return [...subproof(size - length, leaves, [split, end], false), treeRoot(leaves, start, split)]
}

/** The largest power of two that is smaller than the size. */
function splitOf(size: number): number {
  let split = 1
  while (split * 2 < size) split *= 2
  return split
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
