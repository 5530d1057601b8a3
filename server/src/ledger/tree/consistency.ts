import { nodeHash } from './merkle.ts'

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
  let [oldNode, newNode] = [older.size - 1, newer.size - 1]
  const goUp = () => {
    oldNode = Math.floor(oldNode / 2)
    newNode = Math.floor(newNode / 2)
  }
  while (oldNode % 2 === 1) goUp()
  const [first, ...rest] = path
  // Without a proof, there is nothing but the older root.
  if (first === undefined || proof.length === 0) return false
  let [oldRoot, newRoot] = [first, first]
  for (const hash of rest) {
    if (newNode === 0) return false
    if (oldNode % 2 === 1 || oldNode === newNode) {
      oldRoot = nodeHash(hash, oldRoot)
      newRoot = nodeHash(hash, newRoot)
      while (oldNode % 2 === 0 && oldNode !== 0) goUp()
    } else {
      newRoot = nodeHash(newRoot, hash)
    }
    goUp()
  }
  return newNode === 0 && oldRoot.equals(older.root) && newRoot.equals(newer.root)
}

function isPowerOfTwo(size: number): boolean {
  return Number.isInteger(Math.log2(size)) && 2 ** Math.log2(size) === size
}
