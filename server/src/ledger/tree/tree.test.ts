import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { EMPTY_ROOT, extendFrontier, nodeHash, rootOf } from './merkle.ts'
import {
  consistencyPath,
  frontierPath,
  hashPath,
  inclusionPath,
  rootOfInclusion,
  tilesOfPath,
} from './proof-path.ts'
import {
  appendLeaves,
  edgeTiles,
  extendTiles,
  splitHashes,
  TILE_WIDTH,
  type TileId,
} from './tile.ts'

const SIZE_MAX = 1_100
/** Every tree of one full tile, and some or all of the larger ones. */
const SIZES = Array.from({ length: SIZE_MAX }, (_, nth) => nth + 1).filter(
  (size) => size < 300 || size % rounds(7, 1) === 0,
)

/** The leaves of RFC 6962's reference implementation, certificate-transparency `merkle_tree_test.cc`. */
const RFC_LEAVES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
].map((hex) => hash('sha256', Buffer.concat([Buffer.of(0), Buffer.from(hex, 'hex')]), 'buffer'))

const RFC_ROOTS = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

test('has the roots of the reference implementation of RFC 6962', () => {
  assert.equal(
    EMPTY_ROOT.toString('hex'),
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  )
  for (const [index, root] of RFC_ROOTS.entries()) {
    const leaves = RFC_LEAVES.slice(0, index + 1)
    const frontier = extendFrontier({ size: 0, frontier: [] }, leaves)
    assert.equal(rootOf(frontier).toString('hex'), root)
  }
})

const leaves = Array.from({ length: SIZE_MAX }, (_, seq) => hash('sha256', `leaf ${seq}`, 'buffer'))
const known = new Map<string, Buffer>()

/** The definition of RFC 6962, section 2.1. */
function naiveRoot(start: number, end: number): Buffer {
  if (end === start) return EMPTY_ROOT
  const leaf = leaves[start]
  if (end - start === 1 && leaf) return leaf
  const key = `${start} ${end}`
  let split = 1
  while (split * 2 < end - start) split *= 2
  const root =
    known.get(key) ?? nodeHash(naiveRoot(start, start + split), naiveRoot(start + split, end))
  known.set(key, root)
  return root
}

/** RFC 6962, section 2.1.1. */
function naiveInclusion(index: number, start: number, end: number): Buffer[] {
  if (end - start === 1) return []
  let split = 1
  while (split * 2 < end - start) split *= 2
  const middle = start + split
  return index < middle
    ? [...naiveInclusion(index, start, middle), naiveRoot(middle, end)]
    : [...naiveInclusion(index, middle, end), naiveRoot(start, middle)]
}

/** RFC 6962, section 2.1.2. */
function naiveConsistency(from: number, start: number, end: number, isWhole: boolean): Buffer[] {
  if (from === end) return isWhole ? [] : [naiveRoot(start, end)]
  let split = 1
  while (split * 2 < end - start) split *= 2
  const middle = start + split
  return from <= middle
    ? [...naiveConsistency(from, start, middle, isWhole), naiveRoot(middle, end)]
    : [...naiveConsistency(from, middle, end, false), naiveRoot(start, middle)]
}

const textOf = (hashes: readonly Buffer[]): string =>
  hashes.map((bytes) => bytes.toString('hex')).join(' ')

/** Tiles in memory, which grow by runs of leaves as the signer adds them. */
class TileBook {
  readonly tiles = new Map<string, Buffer>()
  size = 0
  frontier: Buffer[] = []
  readonly of = ({ level, number }: TileId): Buffer | null =>
    this.tiles.get(`${level} ${number}`) ?? null

  append(run: readonly Buffer[]): void {
    const levels: Buffer[][] = []
    this.frontier = appendLeaves(this, run, levels)
    for (const { level, number, hashes } of extendTiles(
      { size: this.size, edge: this.of },
      levels,
    )) {
      this.tiles.set(`${level} ${number}`, hashes)
    }
    this.size += run.length
  }
}

const book = new TileBook()
for (let at = 0, run = 1; at < SIZE_MAX; at += run, run = (run * 7) % 311) {
  book.append(leaves.slice(at, at + run))
}

test('every prefix of 1 to 1,100 leaves has the root of a naive tree', () => {
  let frontier: Buffer[] = []
  for (let size = 1; size <= SIZE_MAX; size += 1) {
    frontier = extendFrontier({ size: size - 1, frontier }, leaves.slice(size - 1, size))
    assert(rootOf(frontier).equals(naiveRoot(0, size)), `size ${size}`)
    const fromTiles = hashPath(frontierPath(size), book.of)
    assert(fromTiles !== null && rootOf(fromTiles).equals(naiveRoot(0, size)), `tiles ${size}`)
  }
})

test('every inclusion proof is that of a naive tree and leads to its root', () => {
  for (const size of SIZES) {
    for (const index of size < 40
      ? leaves.slice(0, size).keys()
      : [size - 1, ((size * 31) % 997) % size]) {
      const path = inclusionPath(index, size)
      const hashes = hashPath(path, book.of)
      assert(hashes !== null)
      assert.equal(textOf(hashes), textOf(naiveInclusion(index, 0, size)), `${index} of ${size}`)
      const leaf = leaves.slice(index, index + 1)
      const root = rootOfInclusion({ index, size, leaf: Buffer.concat(leaf) }, hashes)
      assert(root?.equals(naiveRoot(0, size)), `${index} of ${size}`)
    }
  }
})

test('every consistency proof is that of a naive tree', () => {
  for (const to of SIZES) {
    for (const from of to < 40
      ? leaves
          .slice(0, to)
          .keys()
          .map((n) => n + 1)
      : [to - 1, 1 + (((to * 31) % 997) % to)]) {
      const hashes = hashPath(consistencyPath(from, to), book.of)
      assert(hashes !== null)
      const expected = textOf(naiveConsistency(from, 0, to, true))
      assert.equal(textOf(hashes), expected, `${from} to ${to}`)
    }
  }
  assert.deepEqual(consistencyPath(0, 7), [])
})

test('a proof reads few tiles, whatever the size of the tree', () => {
  const size = 10_000_000
  assert(tilesOfPath(inclusionPath(1_234_567, size)).length <= 8)
  assert(tilesOfPath(consistencyPath(1_234_567, size)).length <= 8)
})

test('tiles are those of the specification’s example of 70,000 leaves', () => {
  assert.deepEqual(edgeTiles(70_000), [
    { level: 0, number: 273, width: 112 },
    { level: 1, number: 1, width: 17 },
    { level: 2, number: 0, width: 1 },
  ])
  assert.deepEqual(edgeTiles(256), [{ level: 1, number: 0, width: 1 }])
  assert.deepEqual(edgeTiles(0), [])
})

test('a tile contains the hashes that the specification defines', () => {
  for (let number = 0; number < Math.floor(SIZE_MAX / TILE_WIDTH); number += 1) {
    const at = number * TILE_WIDTH
    assert.deepEqual(
      splitHashes(book.of({ level: 0, number })),
      leaves.slice(at, at + TILE_WIDTH),
      `tile ${number}`,
    )
    assert.deepEqual(
      splitHashes(book.of({ level: 1, number: 0 }))[number],
      naiveRoot(at, at + TILE_WIDTH),
    )
  }
})

test('a missing or short tile gives no proof', () => {
  assert.equal(
    hashPath(inclusionPath(0, 600), () => null),
    null,
  )
  const short = (id: TileId) => book.of(id)?.subarray(0, 64) ?? null
  assert.equal(hashPath(inclusionPath(300, 600), short), null)
})
