import assert from 'node:assert/strict'
import { hash } from 'node:crypto'

export const HASH_BYTES = 32

/** The root of a tree without leaves: SHA-256 of nothing. */
export const EMPTY_ROOT = hash('sha256', Buffer.alloc(0), 'buffer')

/** SHA-256(0x01 ‖ left ‖ right), an inner node of RFC 6962. */
export function nodeHash(left: Buffer, right: Buffer): Buffer {
  left.copy(scratch, 1)
  right.copy(scratch, 1 + HASH_BYTES)
  return Buffer.from(hashScratch(), 'latin1')
}

/** One character per byte, which is three times as fast as a buffer: 0.7 µs instead of 2.3. */
function hashScratch(): string {
  return hash('sha256', scratch, 'binary')
}

/** Synchronous calls can't overlap, so they share it. */
const scratch = Buffer.alloc(1 + 2 * HASH_BYTES, 1)

/**
 * The roots of the perfect subtrees that a tree of some size consists of, the largest first. There is one per
 * bit of the size, so it is all that is needed to extend the tree and to compute its root.
 */
export type Frontier = readonly Buffer[]

/** How many subtrees the frontier of a size has. */
function frontierLength(size: number): number {
  return perfectHeights(size).length
}

/** The heights of those subtrees, the largest first. */
export function perfectHeights(size: number): number[] {
  const heights: number[] = []
  for (let rest = size, height = 0; rest > 0; rest = Math.floor(rest / 2), height += 1) {
    if (rest % 2 === 1) heights.unshift(height)
  }
  return heights
}

/**
 * The frontier after these leaves are appended to a tree of `size` leaves. `onSubtree` gets each subtree that
 * they complete.
 */
export function extendFrontier(
  { size, frontier }: { size: number; frontier: Frontier },
  leaves: readonly Buffer[],
  onSubtree: (height: number, root: Buffer) => void = () => {},
): Buffer[] {
  assert(frontier.length === frontierLength(size), 'a frontier belongs to its size')
  const extended = [...frontier]
  let count = size
  for (const leaf of leaves) {
    let node = leaf
    for (let rest = count, height = 1; rest % 2 === 1; rest = Math.floor(rest / 2), height += 1) {
      const left = extended.pop()
      assert(left, 'an odd size has a subtree to merge with')
      node = nodeHash(left, node)
      onSubtree(height, node)
    }
    extended.push(node)
    count += 1
  }
  return extended
}

export function rootOf(frontier: Frontier): Buffer {
  const last = frontier.at(-1)
  if (last === undefined) return EMPTY_ROOT
  return frontier.slice(0, -1).reduceRight((right, left) => nodeHash(left, right), last)
}

/** The root of a perfect subtree, from the hashes at its bottom. Their number is a power of two. */
export function perfectRoot(hashes: readonly Buffer[]): Buffer {
  return foldHashes(Buffer.concat(hashes))
}

/** Like `perfectRoot`, for hashes stored one after the other in a buffer. Overwrites the buffer. */
export function foldHashes(bytes: Buffer): Buffer {
  let count = bytes.length / HASH_BYTES
  assert(Number.isInteger(Math.log2(count)), 'a perfect subtree has pairs')
  while (count > 1) {
    count /= 2
    for (let index = 0; index < count; index += 1) {
      bytes.copy(scratch, 1, 2 * index * HASH_BYTES, 2 * (index + 1) * HASH_BYTES)
      bytes.write(hashScratch(), index * HASH_BYTES, 'latin1')
    }
  }
  return Buffer.from(bytes.subarray(0, HASH_BYTES))
}
