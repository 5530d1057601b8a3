import assert from 'node:assert/strict'
import { readHead } from '../../ledger/event-store.ts'
import { type Checkpoint, readPublishedTree } from '../../ledger/tree/checkpoint-store.ts'
import { includesEvent } from '../../ledger/tree/inclusion.ts'
import type { LeafPiece, LeafRunTree } from '../../ledger/tree/leaf-run.ts'
import { foldHashes, HASH_BYTES, perfectHeights, rootOf } from '../../ledger/tree/merkle.ts'
import { edgeTiles, type Tile, TILE_WIDTH } from '../../ledger/tree/tile.ts'
import { readTiles } from '../../ledger/tree/tile-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { checkLogNote } from '../../platform/tlog/signed-note.ts'
import { readState, type SignedTree, stateKeyOf } from './signer-state.ts'
import type { ListedSigningKey } from './key-list/stored-key-list.ts'

type TreeCheckOptions = {
  db: Queryable
  /** Null if this process has no archive. Then only the database is compared. */
  archive: ObjectStore | null
  workspaceId: WorkspaceId
  /** The keys of this service. */
  listKeys: () => Promise<ListedSigningKey[]>
  /** A checkpoint that an operator has kept since an earlier verification. The chain must still match it. */
  kept?: KeptCheckpoint | null
}

/** A checkpoint from outside of the ledger. */
export type KeptCheckpoint = Pick<Checkpoint, 'origin' | 'size' | 'root' | 'note'>

/** What was signed and published. Read before the chain, so that the chain contains it. */
type Expected = {
  treeSize: number
  checkpoint: Checkpoint | null
  signed: SignedTree | null
  kept: KeptCheckpoint | null
  keys: readonly Buffer[] | null
}

type UnfinishedTile = { hashes: Buffer; count: number }

/**
 * Compares the tiles, the published checkpoint and the signer's state with the events of a chain as they are read.
 * Create it before reading the chain, and add all hashes in order.
 */
export class TreeCheck {
  readonly #options: TreeCheckOptions
  readonly #expected: Expected
  #problem: string | null
  /** The unfinished tile of each level. */
  #levels: UnfinishedTile[] = []
  #size = 0
  /** The roots of the trees of the expected sizes. */
  readonly #roots = new Map<number, Buffer>()
  /** Tiles to compare. */
  #tiles: Tile[] = []

  private constructor(options: TreeCheckOptions, expected: Expected, problem: string | null) {
    this.#options = options
    this.#expected = expected
    this.#problem = problem
    this.restart()
  }

  /** Throws a `StorageError` if what was signed can't be read. */
  static async open(options: TreeCheckOptions): Promise<TreeCheck> {
    const { db, archive, workspaceId, listKeys, kept = null } = options
    // In this order: the signer writes its object first.
    const { treeSize, checkpoint } = await readPublishedTree(db, workspaceId)
    const state = archive && (await readState(archive, workspaceId))
    const signed = state && state.tree
    const listed = (signed ?? kept) && (await listKeys())
    const keys = listed && listed.map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
    let problem: string | null = null
    const object = `the object ${stateKeyOf(workspaceId)} in the archive`
    if (state?.isDamaged) problem = `${object} is damaged`
    else if (state?.object === null && checkpoint) problem = `${object} is missing`
    return new TreeCheck(options, { treeSize, checkpoint, signed, kept, keys }, problem)
  }

  /** Whether there is a checkpoint to compare. */
  get isSigned(): boolean {
    return this.#expected.checkpoint !== null || this.#expected.signed !== null
  }

  /** What the signer has signed last. */
  get signed(): SignedTree | null {
    return this.#expected.signed
  }

  /** For those who read parts of the chain. */
  get leafRunTree(): LeafRunTree {
    const { treeSize, checkpoint, signed, kept } = this.#expected
    const sizes = [treeSize, checkpoint?.size ?? 0, signed?.size ?? 0, kept?.size ?? 0]
    return { treeSize, sizes: sizes.filter((size) => size % TILE_WIDTH > 0) }
  }

  /** The published checkpoint, if it was compared with the keys of this service. */
  get verified(): KeptCheckpoint | null {
    const { checkpoint, keys, treeSize } = this.#expected
    if (checkpoint === null || keys === null || checkpoint.size > treeSize) return null
    return checkpoint
  }

  /** Discards all hashes before the chain is read again. */
  restart(): void {
    this.#levels = []
    this.#size = 0
    this.#tiles = []
    this.#roots.clear()
    this.#keepRoot()
  }

  /** Adds the next event's hash. */
  add(hash: Buffer): void {
    this.#push(0, hash, this.#size + 1)
    this.#size += 1
    this.#keepRoot()
  }

  /** Adds the next part of the chain. */
  addRun(pieces: readonly LeafPiece[]): void {
    for (const { kind, hashes } of pieces) {
      const bytes = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length)
      for (let at = 0; at < bytes.length; at += HASH_BYTES) {
        const hash = bytes.subarray(at, at + HASH_BYTES)
        if (kind === 'leaves') this.add(hash)
        else this.#addTile(hash)
      }
    }
  }

  #addTile(root: Buffer): void {
    assert(this.#size % TILE_WIDTH === 0, 'a tile starts where the last one ends')
    this.#levels[0] ??= newTile()
    this.#push(1, root, this.#size + TILE_WIDTH)
    this.#size += TILE_WIDTH
    this.#keepRoot()
  }

  /**
   * Continues after the events of the kept checkpoint instead of at the first event. Returns the hash of the last one.
   * The stored tiles provide the hashes that are needed, and are trusted only if the root follows from them. Null if it
   * doesn't. Then the whole chain must be read to find out why.
   */
  async resume(): Promise<string | null> {
    const { db, workspaceId } = this.#options
    const { kept, treeSize } = this.#expected
    this.restart()
    if (kept === null || kept.size === 0 || kept.size > treeSize || !this.#isSigned(kept))
      return null
    const { size } = kept
    const edge = edgeTiles(size)
    const last = { level: 0, number: Math.floor((size - 1) / TILE_WIDTH) }
    const stored = await readTiles(db, workspaceId, [...edge, last])
    for (const tile of edge) {
      const bytes = stored(tile)?.subarray(0, tile.width * HASH_BYTES)
      if (bytes?.length !== tile.width * HASH_BYTES) return null
      for (let level = this.#levels.length; level <= tile.level; level += 1) {
        this.#levels.push(newTile())
      }
      const unfinished = newTile()
      bytes.copy(unfinished.hashes)
      this.#levels[tile.level] = { ...unfinished, count: tile.width }
    }
    this.#size = size
    this.#keepRoot()
    const at = ((size - 1) % TILE_WIDTH) * HASH_BYTES
    const lastHash =
      stored(last)
        ?.subarray(at, at + HASH_BYTES)
        .toString('hex') ?? ''
    const isLast = () => includesEvent(db, kept, { workspaceId, seq: size, hash: lastHash })
    return this.#roots.get(size)?.equals(kept.root) && (await isLast()) ? lastHash : null
  }

  #isSigned(kept: KeptCheckpoint): boolean {
    const isOwn = kept.origin.endsWith(`/${this.#options.workspaceId}`)
    return isOwn && checkLogNote(kept, this.#expected.keys ?? []) === 'valid'
  }

  /** Compares the finished tiles. Call it often, because it frees their memory. */
  async flush(): Promise<void> {
    const tiles = this.#tiles
    this.#tiles = []
    if (tiles.length === 0 || this.#problem !== null) return
    const { db, workspaceId } = this.#options
    const stored = await readTiles(db, workspaceId, tiles)
    const wrong = tiles.find(
      (tile) => stored(tile)?.subarray(0, tile.hashes.length).equals(tile.hashes) !== true,
    )
    if (wrong) {
      const { level, number } = wrong
      const verb = stored(wrong) === null ? 'is missing' : 'differs from the events'
      this.#problem = `tile ${number} of level ${level} ${verb}`
    }
  }

  /** Why the tree doesn't match the chain, as part of a sentence. Null if it does. */
  async finish(): Promise<string | null> {
    await this.flush()
    if (this.#problem !== null) return this.#problem
    const { checkpoint, signed, kept, keys } = this.#expected
    const problem =
      // Only a key of this service makes it a statement about this ledger. It may have been replaced since then.
      (kept && this.#isSigned(kept)
        ? this.#problemOf(kept, 'the checkpoint that was kept', keys)
        : null) ??
      this.#problemOf(signed, 'the checkpoint in the archive', keys) ??
      this.#problemOf(checkpoint, 'the published checkpoint', keys)
    if (problem !== null) return problem
    if (signed && checkpoint && checkpoint.size > signed.size) {
      return `a checkpoint of ${checkpoint.size} events is published, but the archive says that ${signed.size} were signed`
    }
    return null
  }

  /**
   * Ends a check that reads only a part of the chain: the chain must still have as many events as were
   * signed.
   */
  async finishPart(): Promise<string | null> {
    if (this.#problem !== null) return this.#problem
    const { db, workspaceId } = this.#options
    const { checkpoint, signed } = this.#expected
    const size = Math.max(checkpoint?.size ?? 0, signed?.size ?? 0)
    const events = (await readHead(db, workspaceId))?.seq ?? 0
    return events < size ? `${size} events were signed, but the chain has ${events}` : null
  }

  /** `end` is the size of the tree with this hash. */
  #push(level: number, hash: Buffer, end: number): void {
    const tile = (this.#levels[level] ??= newTile())
    hash.copy(tile.hashes, tile.count * HASH_BYTES)
    tile.count += 1
    if (tile.count < TILE_WIDTH) return
    this.#levels[level] = newTile()
    // The tile's number follows from where it ends.
    if (end <= this.#expected.treeSize) {
      const number = end / TILE_WIDTH ** (level + 1) - 1
      this.#tiles.push({ level, number, hashes: Buffer.from(tile.hashes) })
    }
    this.#push(level + 1, foldHashes(tile.hashes), end)
  }

  /** Remembers the root, and the unfinished tiles, if they are needed. */
  #keepRoot(): void {
    const { treeSize, checkpoint, signed, kept } = this.#expected
    const size = this.#size
    if (size === checkpoint?.size || size === signed?.size || size === kept?.size) {
      this.#roots.set(size, rootOf(this.#frontier()))
    }
    if (size !== treeSize) return
    for (const [level, { hashes, count }] of this.#levels.entries()) {
      const number = Math.floor(size / TILE_WIDTH ** (level + 1))
      const bytes = Buffer.from(hashes.subarray(0, count * HASH_BYTES))
      if (count > 0) this.#tiles.push({ level, number, hashes: bytes })
    }
  }

  #frontier(): Buffer[] {
    return this.#levels.toReversed().flatMap(({ hashes, count }) => {
      let at = 0
      return perfectHeights(count).map((height) => {
        const start = at
        at += 2 ** height * HASH_BYTES
        return foldHashes(Buffer.from(hashes.subarray(start, at)))
      })
    })
  }

  #problemOf(
    checkpoint: KeptCheckpoint | null,
    name: string,
    keys: readonly Buffer[] | null,
  ): string | null {
    if (checkpoint === null) return null
    const { size, root } = checkpoint
    if (this.#size < size) return `${name} has ${size} events, but the chain has ${this.#size}`
    if (this.#roots.get(size)?.equals(root) !== true) {
      return `${name} doesn't match the first ${size} events`
    }
    const verdict = checkLogNote(checkpoint, keys ?? [])
    if (verdict === 'changed') return `the note of ${name} doesn't match its size and root`
    return keys === null || verdict === 'valid'
      ? null
      : `${name} has no valid signature by a key of this service`
  }
}

function newTile(): UnfinishedTile {
  return { hashes: Buffer.alloc(TILE_WIDTH * HASH_BYTES), count: 0 }
}
