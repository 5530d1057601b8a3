import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { isConsistent } from './consistency.ts'
import { EMPTY_ROOT, nodeHash } from './merkle.ts'

const LEAVES = Array.from({ length: 70 }, (_, nth) => hash('sha256', `${nth}`, 'buffer'))

/** MTH of RFC 6962, 2.1. */
function rootOf(leaves: readonly Buffer[]): Buffer {
  const [first] = leaves
  if (!first) return EMPTY_ROOT
  if (leaves.length === 1) return first
  const split = largestPower(leaves.length)
  return nodeHash(rootOf(leaves.slice(0, split)), rootOf(leaves.slice(split)))
}

/** SUBPROOF of RFC 6962, 2.1.2. */
function prove(size: number, leaves: readonly Buffer[], isWhole = true): Buffer[] {
  if (size === leaves.length) return isWhole ? [] : [rootOf(leaves)]
  const split = largestPower(leaves.length)
  return size <= split
    ? [...prove(size, leaves.slice(0, split), isWhole), rootOf(leaves.slice(split))]
    : [...prove(size - split, leaves.slice(split), false), rootOf(leaves.slice(0, split))]
}

function largestPower(size: number): number {
  return 2 ** Math.ceil(Math.log2(size) - 1)
}

const HEADS = Array.from({ length: LEAVES.length + 1 }, (_, size) => ({
  size,
  root: rootOf(LEAVES.slice(0, size)),
}))

const headOf = (size: number) => HEADS[size] ?? assert.fail(`no tree of ${size} leaves`)

test('accepts the proof of every pair of sizes, and nothing else', () => {
  for (let newSize = 1; newSize <= LEAVES.length; newSize += 1) {
    for (let oldSize = 1; oldSize <= newSize; oldSize += 1) {
      const proof = prove(oldSize, LEAVES.slice(0, newSize))
      const [older, newer] = [headOf(oldSize), headOf(newSize)]
      const pair = `${oldSize} to ${newSize}`
      assert(isConsistent(older, newer, proof), pair)
      assert(!isConsistent({ ...older, root: headOf(oldSize - 1).root }, newer, proof), pair)
      assert(!isConsistent(older, { ...newer, root: headOf(newSize - 1).root }, proof), pair)
      assert(!isConsistent(older, newer, [...proof, EMPTY_ROOT]), `${pair}, padded`)
      if (proof.length === 0) continue
      assert(!isConsistent(older, newer, proof.slice(0, -1)), `${pair}, truncated`)
      assert(!isConsistent(older, newer, proof.slice(1)), `${pair}, without its start`)
      assert(!isConsistent(older, newer, []), `${pair}, without a proof`)
    }
  }
})

test('any tree extends the empty one, without a proof', () => {
  assert(isConsistent(headOf(0), headOf(7), []))
  assert(!isConsistent(headOf(0), headOf(7), [EMPTY_ROOT]))
  assert(!isConsistent(headOf(7), headOf(0), []))
})
