import assert from 'node:assert/strict'
import { extendFrontier, type Frontier, HASH_BYTES } from './merkle.ts'

export const TILE_HEIGHT = 8
/** The hashes of a full tile. */
export const TILE_WIDTH = 2 ** TILE_HEIGHT

/**
 * A run of at most 256 hashes of one level, as in C2SP tlog-tiles. Level 0 has the leaves. A hash of a higher
 * level is the root of a full tile of the level below.
 */
export type Tile = { level: number; number: number; hashes: Buffer }
export type TileId = Pick<Tile, 'level' | 'number'>

/** The tiles at the right edge of a tree that are not full. Empty ones are left out. */
export function edgeTiles(size: number): (TileId & { width: number })[] {
  const tiles: (TileId & { width: number })[] = []
  for (let level = 0, count = size; count > 0; level += 1, count = Math.floor(count / TILE_WIDTH)) {
    const width = count % TILE_WIDTH
    if (width > 0) tiles.push({ level, number: Math.floor(count / TILE_WIDTH), width })
  }
  return tiles
}

/** The frontier after these leaves. What they add to the tiles of each level is added to `levels`. */
export function appendLeaves(
  tree: { size: number; frontier: Frontier },
  leaves: readonly Buffer[],
  levels: Buffer[][],
): Buffer[] {
  const add = (level: number, hash: Buffer): void => {
    const hashes = (levels[level] ??= [])
    hashes.push(hash)
  }
  for (const leaf of leaves) add(0, leaf)
  return extendFrontier(tree, leaves, (height, root) => {
    if (height % TILE_HEIGHT === 0) add(height / TILE_HEIGHT, root)
  })
}

/**
 * The tiles that change when hashes are added to the levels of a tree of `size` leaves. `edge` returns the
 * hashes of a tile of `edgeTiles(size)`.
 */
export function extendTiles(
  { size, edge }: { size: number; edge: (id: TileId) => Buffer | null },
  levels: readonly (readonly Buffer[])[],
): Tile[] {
  const partials = new Map(edgeTiles(size).map((tile) => [tile.level, tile]))
  return levels.flatMap((added, level) => {
    const partial = partials.get(level)
    const kept = partial ? splitHashes(edge(partial)).slice(0, partial.width) : []
    assert(kept.length === (partial?.width ?? 0), 'a tile has the hashes of its tree')
    const hashes = [...kept, ...added]
    const first = Math.floor(size / TILE_WIDTH ** (level + 1))
    return Array.from({ length: Math.ceil(hashes.length / TILE_WIDTH) }, (_, nth) => ({
      level,
      number: first + nth,
      hashes: Buffer.concat(hashes.slice(nth * TILE_WIDTH, (nth + 1) * TILE_WIDTH)),
    }))
  })
}

export function splitHashes(bytes: Buffer | null): Buffer[] {
  if (bytes === null) return []
  return Array.from({ length: Math.floor(bytes.length / HASH_BYTES) }, (_, nth) =>
    bytes.subarray(nth * HASH_BYTES, (nth + 1) * HASH_BYTES),
  )
}
