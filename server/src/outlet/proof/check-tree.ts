import { readHead } from '../../ledger/event-store.ts'
import { type Checkpoint, readPublishedTree } from '../../ledger/tree/checkpoint-store.ts'
import { foldHashes, HASH_BYTES, perfectHeights, rootOf } from '../../ledger/tree/merkle.ts'
import { type Tile, TILE_WIDTH } from '../../ledger/tree/tile.ts'
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
}

/** What was signed and published. Read before the chain, so that the chain contains it. */
type Expected = {
  treeSize: number
  checkpoint: Checkpoint | null
  signed: SignedTree | null
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
    const { db, archive, workspaceId, listKeys } = options
    // In this order: the signer writes its object first.
    const { treeSize, checkpoint } = await readPublishedTree(db, workspaceId)
    const state = archive && (await readState(archive, workspaceId))
    const signed = state && state.tree
    const listed = signed && (await listKeys())
    const keys = listed && listed.map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
    let problem: string | null = null
    const object = `the object ${stateKeyOf(workspaceId)} in the archive`
    if (state?.isDamaged) problem = `${object} is damaged`
    else if (state?.object === null && checkpoint) problem = `${object} is missing`
    return new TreeCheck(options, { treeSize, checkpoint, signed, keys }, problem)
  }

  /** Whether there is a checkpoint to compare. */
  get isSigned(): boolean {
    return this.#expected.checkpoint !== null || this.#expected.signed !== null
  }

  /** What the signer has signed last. */
  get signed(): SignedTree | null {
    return this.#expected.signed
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
    this.#push(0, hash)
    this.#size += 1
    this.#keepRoot()
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
    const { checkpoint, signed, keys } = this.#expected
    const problem =
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

  #push(level: number, hash: Buffer): void {
    const tile = (this.#levels[level] ??= newTile())
    hash.copy(tile.hashes, tile.count * HASH_BYTES)
    tile.count += 1
    if (tile.count < TILE_WIDTH) return
    this.#levels[level] = newTile()
    // The tile's number follows from where it ends.
    const end = this.#size + 1
    if (end <= this.#expected.treeSize) {
      const number = end / TILE_WIDTH ** (level + 1) - 1
      this.#tiles.push({ level, number, hashes: Buffer.from(tile.hashes) })
    }
    this.#push(level + 1, foldHashes(tile.hashes))
  }

  /** Remembers the root, and the unfinished tiles, if they are needed. */
  #keepRoot(): void {
    const { treeSize, checkpoint, signed } = this.#expected
    const size = this.#size
    if (size === checkpoint?.size || size === signed?.size) {
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
    checkpoint: Checkpoint | null,
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
