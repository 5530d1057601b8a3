import assert from 'node:assert/strict'
import { HASH_BYTES, perfectRoot } from './merkle.ts'

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

/**
 * The tiles that change when leaves are appended to a tree of `size` leaves. `edge` returns the hashes of a
 * tile of `edgeTiles(size)`.
 */
export function extendTiles(
  { size, edge }: { size: number; edge: (id: TileId) => Buffer | null },
  leaves: readonly Buffer[],
): Tile[] {
  const widths = new Map(edgeTiles(size).map((tile) => [tile.level, tile]))
  const changed: Tile[] = []
  let appended: readonly Buffer[] = leaves
  for (let level = 0, count = size; appended.length > 0; level += 1) {
    const partial = widths.get(level)
    const kept = partial ? splitHashes(edge(partial)).slice(0, partial.width) : []
    assert(kept.length === (partial?.width ?? 0), 'a tile has the hashes of its tree')
    const hashes = [...kept, ...appended]
    const first = Math.floor(count / TILE_WIDTH)
    const full: Buffer[] = []
    for (let at = 0; at < hashes.length; at += TILE_WIDTH) {
      const tile = hashes.slice(at, at + TILE_WIDTH)
      changed.push({ level, number: first + at / TILE_WIDTH, hashes: Buffer.concat(tile) })
      if (tile.length === TILE_WIDTH) full.push(perfectRoot(tile))
    }
    appended = full
    count = first
  }
  return changed
}

export function splitHashes(bytes: Buffer | null): Buffer[] {
  if (bytes === null) return []
  return Array.from({ length: Math.floor(bytes.length / HASH_BYTES) }, (_, nth) =>
    bytes.subarray(nth * HASH_BYTES, (nth + 1) * HASH_BYTES),
  )
}
