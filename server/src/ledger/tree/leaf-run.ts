import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { foldHashes, HASH_BYTES } from './merkle.ts'
import { type Tile, TILE_WIDTH } from './tile.ts'
import { readTiles } from './tile-store.ts'

/** Hashes one after the other: leaves, or the roots of full tiles of level 0. Threads can send it to each other. */
export type LeafPiece = { kind: 'leaves' | 'tiles'; hashes: Uint8Array }

/** What a run of leaves needs to know about the tree. */
export type LeafRunTree = {
  /** How many leaves the stored tiles contain. */
  treeSize: number
  /** Sizes that don't end with a tile and whose roots are compared, so the leaves around them are needed. */
  sizes: readonly number[]
}

/**
 * Reduces a run of leaves to the roots of its tiles, so that the thread that joins the runs of a tree has almost nothing
 * left to hash. Compares the full tiles of level 0 with the stored ones.
 */
export class LeafRun {
  readonly pieces: LeafPiece[] = []
  readonly #tree: LeafRunTree
  readonly #tile = Buffer.alloc(TILE_WIDTH * HASH_BYTES)
  /** The leaves of the current tile that are not in a piece yet, and where they start in it. */
  #from: number
  #size: number
  #tiles: Tile[] = []
  #isIntact = true

  constructor(size: number, tree: LeafRunTree) {
    this.#size = size
    this.#from = size % TILE_WIDTH
    this.#tree = tree
  }

  /** The buffer is overwritten after the call. */
  add(hash: Buffer): void {
    hash.copy(this.#tile, (this.#size % TILE_WIDTH) * HASH_BYTES)
    this.#size += 1
    if (this.#size % TILE_WIDTH === 0) this.#endTile()
  }

  /** Compares the finished tiles. Call it often, because it frees their memory. */
  async flush(db: Queryable, workspaceId: WorkspaceId): Promise<void> {
    const tiles = this.#tiles
    this.#tiles = []
    if (tiles.length === 0) return
    const stored = await readTiles(db, workspaceId, tiles)
    if (!tiles.every((tile) => stored(tile)?.equals(tile.hashes) === true)) this.#isIntact = false
  }

  /** All pieces in order. Null if a stored tile differs from the leaves. */
  async finish(db: Queryable, workspaceId: WorkspaceId): Promise<LeafPiece[] | null> {
    await this.flush(db, workspaceId)
    this.#addLeaves(this.#size % TILE_WIDTH)
    return this.#isIntact ? this.pieces : null
  }

  #endTile(): void {
    const { treeSize, sizes } = this.#tree
    const [start, end] = [this.#size - TILE_WIDTH, this.#size]
    const isNeeded = sizes.some((size) => size > start && size < end)
    if (this.#from > 0 || isNeeded) {
      this.#addLeaves(TILE_WIDTH)
    } else {
      const hashes = Buffer.from(this.#tile)
      if (end <= treeSize) this.#tiles.push({ level: 0, number: start / TILE_WIDTH, hashes })
      this.#add('tiles', foldHashes(this.#tile))
    }
    this.#from = 0
  }

  #addLeaves(to: number): void {
    if (to > this.#from) {
      this.#add('leaves', this.#tile.subarray(this.#from * HASH_BYTES, to * HASH_BYTES))
    }
    this.#from = to % TILE_WIDTH
  }

  #add(kind: LeafPiece['kind'], hashes: Buffer): void {
    this.pieces.push({ kind, hashes: Uint8Array.from(hashes) })
  }
}
