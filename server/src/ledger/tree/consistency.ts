import { nodeHash } from './merkle.ts'

/** A safe integer has no more bits. */
const LEVELS_MAX = 53

type TreeHead = { size: number; root: Buffer }

/**
 * Whether a proof shows that `newer` extends `older` (RFC 9162, 2.1.4.2). An empty tree is extended by any, and a
 * tree by itself, both with an empty proof.
 */
export function isConsistent(older: TreeHead, newer: TreeHead, proof: readonly Buffer[]): boolean {
  if (older.size > newer.size) return false
  if (older.size === newer.size) return proof.length === 0 && older.root.equals(newer.root)
  if (older.size === 0) return proof.length === 0
  const path = isPowerOfTwo(older.size) ? [older.root, ...proof] : proof
  // Without a proof, there is nothing but the older root.
  const [first, ...rest] = path
  if (first === undefined || proof.length === 0) return false
  // Starts at the largest perfect subtree at the end of the older tree.
  let [oldNode, newNode] = goUp(older.size - 1, newer.size - 1, 1)
  let [oldRoot, newRoot] = [first, first]
  for (const hash of rest) {
    if (newNode === 0) return false
    if (oldNode % 2 === 1 || oldNode === newNode) {
      oldRoot = nodeHash(hash, oldRoot)
      newRoot = nodeHash(hash, newRoot)
      if (oldNode !== 0) [oldNode, newNode] = goUp(oldNode, newNode, 0)
    } else {
      newRoot = nodeHash(newRoot, hash)
    }
    ;[oldNode, newNode] = [Math.floor(oldNode / 2), Math.floor(newNode / 2)]
  }
  return newNode === 0 && oldRoot.equals(older.root) && newRoot.equals(newer.root)
}

/** The ancestors of two nodes, above the levels where the last bit of the first one is `bit`. */
function goUp(first: number, second: number, bit: 0 | 1): [number, number] {
  let levels = 0
  for (let node = first; node % 2 === bit && levels < LEVELS_MAX; node = Math.floor(node / 2))
    levels += 1
  return [Math.floor(first / 2 ** levels), Math.floor(second / 2 ** levels)]
}

function isPowerOfTwo(size: number): boolean {
  return Number.isInteger(Math.log2(size)) && 2 ** Math.log2(size) === size
}
