import { type ChainHead, EMPTY_HEAD } from '../../ledger/event.ts'
import { readHead } from '../../ledger/event-store.ts'
import { SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { requestChainRestores } from '../../ledger/segment/restore.ts'
import type { Segment } from '../../ledger/segment/segment-store.ts'
import { endsDay, keepDayCheckpoint } from '../../ledger/tree/checkpoint-day-store.ts'
import {
  type Checkpoint,
  cosignedCheckpoint,
  moveTree,
  type PublishedTree,
  readPublishedTree,
  setRefusal,
  unpublish,
} from '../../ledger/tree/checkpoint-store.ts'
import { type Frontier, rootOf } from '../../ledger/tree/merkle.ts'
import { extendTiles, type Tile } from '../../ledger/tree/tile.ts'
import { writeTiles } from '../../ledger/tree/tile-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { type ObjectStore, stoppable } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { type MonotonicClock, monotonicClock, type Clock } from '../../platform/time/clock.ts'
import {
  checkNoteSignature,
  LOG_SIGNATURE,
  type NoteKey,
  parseCheckpoint,
} from '../../platform/tlog/signed-note.ts'
import type { ServiceAudit } from '../../tenancy/caller.ts'
import { raiseNotices } from '../../tenancy/notice/notice-store.ts'
import { findCompanyOf } from '../../tenancy/workspace/workspace-store.ts'
import { ChainRefusedError, growTree, readEdge, readLeaves, type TreeDeps } from './build-tree.ts'
import { announceKeys } from './key-list/announce-keys.ts'
import { checkConditionalWrites } from './check-conditional-writes.ts'
import { listSigningKeys, loadSigningKeys } from './key-list/key-list.ts'
import type { KeyListDeps, KeySource } from './key-list/key-list-copies.ts'
import {
  isSignedTree,
  readState,
  type SignedTree,
  stateKeyOf,
  UNSIGNED,
  writeState,
} from './signer-state.ts'
import { signCheckpoint, type SigningKey, publicKeyText, vkeyOf } from './signing-key.ts'
import type { ListedSigningKey } from './key-list/stored-key-list.ts'

export type TreeSignerOptions = {
  database: Pick<Database, 'pool' | 'db'>
  archive: ObjectStore
  keySource: KeySource
  /** The first part of the origin of a workspace that has no checkpoint yet. */
  originHost: string
  clock: Clock
  logger: Logger
  monotonic?: MonotonicClock
  /** Called with the time from the receipt of an event to its checkpoint. */
  onSigned?: (ageSeconds: number) => void
  /** Events per checkpoint while a chain is far behind. */
  stepEvents?: number
}

/**
 * `more`: more events are waiting. `overtaken`: another signer was faster. `restoring`: archived events must be
 * restored first. `refused`: see the log.
 */
export type SignOutcome = 'done' | 'more' | 'overtaken' | 'restoring' | 'refused'

/** The last signed tree, null before the first one, and the tag of the object that contains it. */
type KeptState = { tree: SignedTree | null; tag: string | null }

const STEP_EVENTS = 16_384
const STATES_KEPT_MAX = 2_000
const KEYS_KEPT_MS = 60_000

/**
 * Signs the trees of the chains. It doesn't trust the database: what it last signed is an object in the storage
 * of the archive, and it signs only what extends that. Replacing that object decides between two signers. Tiles
 * and checkpoints are published after that, so a crash in between leaves them behind, and the next run, on any
 * node, catches up.
 */
export class TreeSigner {
  readonly #options: TreeSignerOptions
  readonly #nowMs: MonotonicClock
  readonly #stepEvents: number
  /** What this node has read or written last. If another signer was faster, replacing it fails. */
  readonly #states = new Map<WorkspaceId, KeptState>()
  /** Chains whose tiles this process rebuilds from the first event. */
  readonly #rebuilding = new Set<WorkspaceId>()
  #keys: { loaded: Promise<SigningKey[]>; atMs: number } | null = null
  #isStorageChecked = false

  constructor(options: TreeSignerOptions) {
    this.#options = options
    this.#nowMs = options.monotonic ?? monotonicClock
    this.#stepEvents = options.stepEvents ?? STEP_EVENTS
  }

  /** Signs and publishes what is new in a chain, up to a limit. An empty chain gets a checkpoint of size 0. */
  async sign(workspaceId: WorkspaceId, signal?: AbortSignal): Promise<SignOutcome> {
    const { database, archive, logger } = this.#options
    const deps = { database, archive: signal ? stoppable(archive, signal) : archive, signal }
    try {
      return await this.#advance(workspaceId, deps)
    } catch (error) {
      // Another node may have changed the object.
      this.#states.delete(workspaceId)
      if (error instanceof SegmentColdError) return await this.#waitForRestore(error.segment)
      if (!(error instanceof ChainRefusedError)) throw error
      const problem = error.message
      await setRefusal(database.db, workspaceId, problem)
      await this.#notify(workspaceId, problem)
      const action = 'Follow docs/operations.md, section "The signer refuses to sign".'
      logger.error({ event: 'signer.refused', workspaceId, problem, action })
      return 'refused'
    }
  }

  /** One notice until the chain is signed again, whatever happens to it meanwhile. */
  async #notify(workspaceId: WorkspaceId, problem: string): Promise<void> {
    const { database, clock } = this.#options
    const companyId = await findCompanyOf(database.db, workspaceId)
    if (companyId === null) return
    const { checkpoint } = await readPublishedTree(database.db, workspaceId)
    const last = checkpoint?.signedAt.toISOString() ?? 'none'
    const draft = {
      companyId,
      workspaceId,
      kind: 'CHAIN_BROKEN',
      cause: `${workspaceId}:refused after ${last}`,
      message: `The chain doesn’t match what was signed before, so it gets no new checkpoints: ${problem}. Ask the operator whether a backup was restored.`,
      link: '/app/integrity',
    } as const
    await raiseNotices(database.db, [draft], clock())
  }

  async #waitForRestore(segment: Segment): Promise<SignOutcome> {
    const { database, archive, logger } = this.#options
    await requestChainRestores(database.db, archive, segment)
    const { workspaceId, objectKey } = segment
    logger.info({ event: 'signer.waiting', workspaceId, objectKey })
    return 'restoring'
  }

  async #advance(workspaceId: WorkspaceId, deps: TreeDeps): Promise<SignOutcome> {
    const { db } = deps.database
    const published = await readPublishedTree(db, workspaceId)
    const state = await this.#readState(workspaceId, published, deps)
    const head = (await readHead(db, workspaceId)) ?? EMPTY_HEAD
    checkHead(head, state.tree ?? UNSIGNED)
    if (await this.#unpublishForged(workspaceId, { state, published }, deps)) return 'more'
    if (state.tree !== null) {
      const outcome = await this.#publishSigned(workspaceId, state.tree, published, deps)
      if (outcome !== 'done') return outcome
      // With a new key, a chain without new events is signed again too.
      if (head.seq === state.tree.size && (await this.#hasCurrentKey(state.tree, deps))) {
        if (published.refusal !== null) await setRefusal(db, workspaceId, null)
        return 'done'
      }
    }
    return await this.#extend(workspaceId, { state, head, published, deps })
  }

  async #readState(
    workspaceId: WorkspaceId,
    published: PublishedTree,
    { archive }: TreeDeps,
  ): Promise<KeptState> {
    const known = this.#states.get(workspaceId)
    if (known?.tree && !isReplaced(known.tree, published)) return known
    const key = stateKeyOf(workspaceId)
    const { object, tree, isDamaged } = await readState(archive, workspaceId)
    if (isDamaged) throw new ChainRefusedError(`the object ${key} in the archive is damaged`)
    if (object === null || tree === null) {
      if (published.checkpoint === null) return { tree: null, tag: null }
      throw new ChainRefusedError(
        `the archive storage has no object ${key}, but a checkpoint of ${published.checkpoint.size} events was published`,
      )
    }
    if (!(await this.#hasSigned(workspaceId, tree, archive))) {
      throw new ChainRefusedError(
        `the object ${key} in the archive is not signed with a key of this service`,
      )
    }
    return this.#keep(workspaceId, { tree, tag: object.tag })
  }

  /** Removes a checkpoint that was written by someone else, whose size would keep later ones from being published. */
  async #unpublishForged(
    workspaceId: WorkspaceId,
    { state, published: { checkpoint } }: { state: KeptState; published: PublishedTree },
    { database: { db }, archive }: TreeDeps,
  ): Promise<boolean> {
    if (checkpoint === null || checkpoint.size <= (state.tree?.size ?? 0)) return false
    if (await this.#hasSigned(workspaceId, checkpoint, archive)) return false
    const { size } = checkpoint
    const signedSize = state.tree?.size ?? 0
    this.#options.logger.error({ event: 'signer.forged', workspaceId, size, signedSize })
    await unpublish(db, workspaceId, checkpoint)
    return true
  }

  async #hasSigned(
    workspaceId: WorkspaceId,
    tree: Checkpoint,
    archive: ObjectStore,
  ): Promise<boolean> {
    const current = (await this.#loadKeys(archive)).map(({ publicKey }) => publicKey)
    if (isSignedTree(tree, { workspaceId, publicKeys: current })) return true
    // Signed with a key that was replaced, or that another node has just created.
    const listed = (await this.listKeys()).map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
    return isSignedTree(tree, { workspaceId, publicKeys: listed })
  }

  #keep(workspaceId: WorkspaceId, state: KeptState): KeptState {
    this.#states.delete(workspaceId)
    this.#states.set(workspaceId, state)
    const [oldest] = this.#states.keys()
    if (this.#states.size > STATES_KEPT_MAX && oldest !== undefined) this.#states.delete(oldest)
    return state
  }

  /** Publishes what was signed before, if a crash or a restored backup left the database behind. */
  async #publishSigned(
    workspaceId: WorkspaceId,
    tree: SignedTree,
    published: PublishedTree,
    deps: TreeDeps,
  ): Promise<SignOutcome> {
    const { treeSize, checkpoint } = published
    const last = cosignedCheckpoint(published)
    const isBehind = isReplaced(checkpoint, { checkpoint: tree })
    if (treeSize >= tree.size) {
      if (!isBehind) return 'done'
      const stored = await readEdge(deps, workspaceId, tree.size)
      if (!stored || !isSame(stored.frontier, tree.frontier)) {
        return await this.#rebuild(workspaceId, { treeSize, signedSize: tree.size })
      }
      const move = { fromSize: treeSize, toSize: treeSize, checkpoint: tree, last }
      return (await this.#move(workspaceId, move, [])) ? 'done' : 'overtaken'
    }
    const toSize = Math.min(treeSize + this.#stepEvents, tree.size)
    const start = { size: treeSize, lastHash: treeSize === 0 ? EMPTY_HEAD.hash : null }
    const { leaves } = await readLeaves(deps, workspaceId, { start, toSize })
    const stored = await readEdge(deps, workspaceId, treeSize)
    const grown = stored && (await growTree({ size: treeSize, ...stored }, leaves))
    const isWhole = toSize === tree.size
    if (!grown || (isWhole && !isSame(grown.frontier, tree.frontier))) {
      return await this.#rebuild(workspaceId, { treeSize, signedSize: tree.size })
    }
    if (isWhole) this.#rebuilding.delete(workspaceId)
    const move = { fromSize: treeSize, toSize, checkpoint: isWhole ? tree : null, last }
    const tiles = extendTiles({ size: treeSize, edge: stored.edge }, grown.levels)
    return (await this.#move(workspaceId, move, tiles)) ? 'more' : 'overtaken'
  }

  /** Starts again from the first event, in steps. Refuses if that has not helped. */
  async #rebuild(
    workspaceId: WorkspaceId,
    { treeSize, signedSize }: { treeSize: number; signedSize: number },
  ): Promise<SignOutcome> {
    if (this.#rebuilding.has(workspaceId)) {
      throw new ChainRefusedError(`its first ${signedSize} events are not those that were signed`)
    }
    this.#options.logger.warn({ event: 'signer.tree-rebuilt', workspaceId, treeSize })
    this.#rebuilding.add(workspaceId)
    const move = { fromSize: treeSize, toSize: 0, checkpoint: null, last: null }
    return (await this.#move(workspaceId, move, [])) ? 'more' : 'overtaken'
  }

  async #extend(
    workspaceId: WorkspaceId,
    {
      state,
      head,
      published,
      deps,
    }: {
      state: KeptState
      head: ChainHead
      published: PublishedTree
      deps: TreeDeps
    },
  ): Promise<SignOutcome> {
    const { clock, onSigned } = this.#options
    const base = state.tree ?? UNSIGNED
    // Before signing: a state that was signed with a leaked key must not get a signature of the current one.
    const stored = await readEdge(deps, workspaceId, base.size)
    if (stored === null || !isSame(stored.frontier, base.frontier)) {
      const { treeSize } = published
      return await this.#rebuild(workspaceId, { treeSize, signedSize: base.size })
    }
    const toSize = Math.min(head.seq, base.size + this.#stepEvents)
    const read = await readLeaves(deps, workspaceId, { start: base, toSize })
    const { leaves, lastHash, firstReceivedAtMs } = read
    const { frontier, levels } = await growTree(base, leaves)
    const origin = state.tree?.origin ?? `${this.#options.originHost}/${workspaceId}`
    const end = { size: toSize, frontier, lastHash: lastHash ?? base.lastHash }
    const tree = await this.#signTree({ origin, ...end }, deps)
    const tag = await deps.archive.replace(stateKeyOf(workspaceId), {
      bytes: writeState(tree),
      tag: state.tag,
    })
    if (tag === null) {
      this.#states.delete(workspaceId)
      return 'overtaken'
    }
    this.#keep(workspaceId, { tree, tag })
    if (firstReceivedAtMs !== null) onSigned?.((clock() - firstReceivedAtMs) / 1_000)
    // The storage was restored from an older backup than the database. The next runs catch up.
    if (tree.size < (published.checkpoint?.size ?? 0)) return 'more'
    const tiles = extendTiles({ size: base.size, edge: stored.edge }, levels)
    const last = cosignedCheckpoint(published)
    const move = { fromSize: published.treeSize, toSize: tree.size, checkpoint: tree, last }
    if (!(await this.#move(workspaceId, move, tiles))) return 'overtaken'
    return tree.size < head.seq ? 'more' : 'done'
  }

  async #hasCurrentKey({ origin, note }: SignedTree, { archive }: TreeDeps): Promise<boolean> {
    const [current] = await this.#loadKeys(archive)
    const checkpoint = parseCheckpoint(note)
    if (!current || checkpoint === null) return false
    const key: NoteKey = { name: origin, type: LOG_SIGNATURE, publicKey: current.publicKey }
    return checkNoteSignature(checkpoint, key) === 'valid'
  }

  async #signTree(
    tree: Pick<SignedTree, 'origin' | 'size' | 'frontier' | 'lastHash'>,
    { archive }: TreeDeps,
  ): Promise<SignedTree> {
    const { clock } = this.#options
    if (!this.#isStorageChecked) {
      await checkConditionalWrites(archive)
      this.#isStorageChecked = true
    }
    const keys = await this.#loadKeys(archive)
    const root = rootOf(tree.frontier)
    const note = signCheckpoint({ ...tree, root }, keys)
    const [current] = keys
    if (!current) throw new Error('a signer has a key')
    const vkey = vkeyOf(tree.origin, current.publicKey)
    return { ...tree, root, note, vkey, signedAt: new Date(clock()) }
  }

  /** The public key that signs checkpoints now. A change by another node takes up to a minute to show here. */
  async currentKey(): Promise<string> {
    const [current] = await this.#loadKeys(this.#options.archive)
    return current ? publicKeyText(current) : ''
  }

  /** The public keys of all checkpoints, with the current one, even before it has signed anything. */
  async listKeys(): Promise<ListedSigningKey[]> {
    const { archive } = this.#options
    await this.#loadKeys(archive)
    return await listSigningKeys(this.#keyListDeps(archive))
  }

  /** Writes the audit entries about new keys that are missing. */
  async announceKeys(audit: ServiceAudit): Promise<void> {
    await announceKeys(this.#keyListDeps(this.#options.archive), audit)
  }

  #keyListDeps(archive: ObjectStore): KeyListDeps {
    const { database, keySource, logger } = this.#options
    return { db: database.db, archive, keySource, logger }
  }

  async #loadKeys(archive: ObjectStore): Promise<SigningKey[]> {
    const { clock } = this.#options
    if (this.#keys === null || this.#nowMs() - this.#keys.atMs > KEYS_KEPT_MS) {
      const loaded = loadSigningKeys(this.#keyListDeps(archive), clock)
      this.#keys = { loaded, atMs: this.#nowMs() }
    }
    try {
      return await this.#keys.loaded
    } catch (error) {
      this.#keys = null
      throw error
    }
  }

  /**
   * Returns false if another signer has moved the tree meanwhile. `last` is the checkpoint that is replaced. It
   * is kept if it is the last one of its day, which is an extra cost only once per day.
   */
  async #move(
    workspaceId: WorkspaceId,
    { last, ...move }: Parameters<typeof moveTree>[2] & { last: Checkpoint | null },
    tiles: readonly Tile[],
  ): Promise<boolean> {
    return await this.#options.database.db.transaction().execute(async (trx) => {
      if (!(await moveTree(trx, workspaceId, move))) return false
      await writeTiles(trx, workspaceId, tiles)
      if (last && move.checkpoint && endsDay(last, move.checkpoint)) {
        await keepDayCheckpoint(trx, workspaceId, last)
      }
      return true
    })
  }
}

/** Compares the head of the chain with what was signed, before any event is read. */
function checkHead(
  head: ChainHead,
  { size, lastHash }: Pick<SignedTree, 'size' | 'lastHash'>,
): void {
  if (head.seq < size) {
    throw new ChainRefusedError(
      `the chain has ${head.seq} events, but a checkpoint of ${size} events was signed`,
    )
  }
  if (head.seq === size && head.hash !== lastHash) {
    throw new ChainRefusedError(
      `event ${size} has the hash ${head.hash}, but the one that was signed has ${lastHash}`,
    )
  }
}

/** Whether the second checkpoint is newer, or has other signatures of the same tree. */
function isReplaced(
  known: Pick<SignedTree, 'size' | 'note'> | null,
  { checkpoint }: Pick<PublishedTree, 'checkpoint'>,
): boolean {
  if (known === null || checkpoint === null) return known === null
  if (known.size !== checkpoint.size) return known.size < checkpoint.size
  return known.note !== checkpoint.note
}

function isSame(a: Frontier, b: Frontier): boolean {
  return a.length === b.length && a.every((hash, nth) => b[nth]?.equals(hash) === true)
}
