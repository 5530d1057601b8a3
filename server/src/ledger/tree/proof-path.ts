import assert from 'node:assert/strict'
import {
  type Frontier,
  HASH_BYTES,
  nodeHash,
  perfectHeights,
  perfectRoot,
  rootOf,
} from './merkle.ts'
import { splitHashes, TILE_HEIGHT, TILE_WIDTH, type TileId } from './tile.ts'

/** A perfect subtree: the `index`-th one of its height, which has 2^height leaves. */
type Subtree = { height: number; index: number }

/**
 * The nodes of a proof in its order. A node is the root of the leaves from `start` up to but not including
 * `end`, and is computed from perfect subtrees, the largest first.
 */
type ProofNode = readonly Subtree[]

/** The inclusion proof of RFC 6962, section 2.1.1: from the sibling of the leaf up to the child of the root. */
export function inclusionPath(index: number, size: number): ProofNode[] {
  assert(index >= 0 && index < size, 'a leaf is in its tree')
  const path: ProofNode[] = []
  let [start, end] = [0, size]
  while (end - start > 1) {
    const middle = start + splitOf(end - start)
    if (index < middle) {
      path.unshift(subtreesOf(middle, end))
      end = middle
    } else {
      path.unshift(subtreesOf(start, middle))
      start = middle
    }
  }
  return path
}

/** The consistency proof of RFC 6962, section 2.1.2, that the first `from` leaves of `to` are the tree `from`. */
export function consistencyPath(from: number, to: number): ProofNode[] {
  assert(from >= 0 && from <= to, 'a tree extends a smaller one')
  if (from === 0 || from === to) return []
  const path: ProofNode[] = []
  let [start, end] = [0, to]
  // Whether the old tree has no leaf before `start`, so that the verifier knows the root of the rest.
  let isWhole = true
  while (end !== from) {
    const middle = start + splitOf(end - start)
    if (from <= middle) {
      path.unshift(subtreesOf(middle, end))
      end = middle
    } else {
      path.unshift(subtreesOf(start, middle))
      start = middle
      isWhole = false
    }
  }
  if (!isWhole) path.unshift(subtreesOf(start, end))
  return path
}

/** The tiles that contain the hashes of these nodes. */
export function tilesOfPath(path: readonly ProofNode[]): TileId[] {
  const tiles = new Map<string, TileId>()
  for (const subtree of path.flat()) {
    const { level, number } = placeOf(subtree)
    tiles.set(`${level} ${number}`, { level, number })
  }
  return [...tiles.values()]
}

/** The perfect subtrees of a whole tree, whose roots are its frontier. */
export function frontierPath(size: number): ProofNode[] {
  return subtreesOf(0, size).map((subtree) => [subtree])
}

/** The hashes of these nodes, or null if the tiles don't have them all. */
export function hashPath(
  path: readonly ProofNode[],
  tileOf: (id: TileId) => Buffer | null,
): Buffer[] | null {
  const nodes: Buffer[] = []
  for (const subtrees of path) {
    const roots = subtrees.map((subtree) => subtreeRoot(subtree, tileOf))
    if (!roots.every((root) => root !== null)) return null
    nodes.push(rootOf(roots))
  }
  return nodes
}

/** The root that an inclusion proof leads to. */
export function rootOfInclusion(
  { index, size, leaf }: { index: number; size: number; leaf: Buffer },
  hashes: readonly Buffer[],
): Buffer | null {
  let [node, last, rest] = [index, size - 1, leaf]
  for (const hash of hashes) {
    if (last === 0) return null
    if (node % 2 === 1 || node === last) {
      rest = nodeHash(hash, rest)
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)]
    } else {
      rest = nodeHash(rest, hash)
    }
    ;[node, last] = [half(node), half(last)]
  }
  return last === 0 ? rest : null
}

export function isFrontier(frontier: Frontier, size: number): boolean {
  return (
    frontier.length === perfectHeights(size).length &&
    frontier.every((hash) => hash.length === HASH_BYTES)
  )
}

const half = (n: number): number => Math.floor(n / 2)

/** The largest power of two below `count`, which is at least 2. */
function splitOf(count: number): number {
  let split = 1
  while (split * 2 < count) split *= 2
  return split
}

/** `start` is a multiple of the largest subtree, as in every node of a proof. */
function subtreesOf(start: number, end: number): Subtree[] {
  let at = start
  return perfectHeights(end - start).map((height) => {
    const subtree = { height, index: at / 2 ** height }
    assert(Number.isInteger(subtree.index), 'a subtree is aligned')
    at += 2 ** height
    return subtree
  })
}

/** Where the hashes at the bottom of a subtree are. They are all in one tile. */
function placeOf({ height, index }: Subtree): TileId & { offset: number; count: number } {
  const level = Math.floor(height / TILE_HEIGHT)
  const count = 2 ** (height % TILE_HEIGHT)
  const first = index * count
  return { level, number: Math.floor(first / TILE_WIDTH), offset: first % TILE_WIDTH, count }
}

function subtreeRoot(subtree: Subtree, tileOf: (id: TileId) => Buffer | null): Buffer | null {
  const { level, number, offset, count } = placeOf(subtree)
  const hashes = splitHashes(tileOf({ level, number })).slice(offset, offset + count)
  return hashes.length === count ? perfectRoot(hashes) : null
}
