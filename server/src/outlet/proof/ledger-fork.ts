import { OperatorError } from '../../errors.ts'
import { EMPTY_HEAD } from '../../ledger/event.ts'
import { readHead } from '../../ledger/event-store.ts'
import { type Checkpoint, readPublishedTree } from '../../ledger/tree/checkpoint-store.ts'
import { type Frontier, perfectHeights, rootOf } from '../../ledger/tree/merkle.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import { growTree, readLeaves, type TreeDeps } from './build-tree.ts'
import {
  isSignedTree,
  readState,
  type SignedTree,
  stateKeyOf,
  tooLargeText,
  UNSIGNED,
} from './signer-state.ts'

const EVENTS_PER_READ = 16_384

type ChainTree = Pick<SignedTree, 'size' | 'frontier' | 'lastHash'>

/** A chain that differs from what was signed. */
export type LedgerFork = {
  /** Why the signer refuses it. */
  reason: string
  /** What was signed last, or null if that is lost. */
  signed: SignedTree | null
  /** What the database says was signed last, which the signer doesn't trust. */
  publishedSize: number | null
  origin: string | null
  /** The object with what was signed last. */
  stored: { bytes: Buffer; tag: string } | null
  /** The tree of the stored events, up to the accepted size. */
  chain: ChainTree
  /** How many events the database has. */
  headSize: number
  /** The number of events at the start that are certainly those that were signed. */
  unchangedSize: number
}

/**
 * Compares all events of a chain with what was signed. Returns null if the chain extends it, or was never signed.
 * Throws a `ChainRefusedError` if the events don't even form a chain.
 */
export async function findFork(
  deps: TreeDeps & { publicKeys: readonly Buffer[] },
  workspaceId: WorkspaceId,
  acceptSize: number | null,
): Promise<LedgerFork | null> {
  const { db } = deps.database
  const { checkpoint } = await readPublishedTree(db, workspaceId)
  const { object: stored, tree, isDamaged } = await readState(deps.archive, workspaceId)
  if (stored === null && isDamaged) throw new OperatorError(tooLargeText(stateKeyOf(workspaceId)))
  if (stored === null && checkpoint === null) return null
  const { publicKeys } = deps
  const signed = tree && isSignedTree(tree, { workspaceId, publicKeys }) ? tree : null
  const headSize = ((await readHead(db, workspaceId)) ?? EMPTY_HEAD).seq
  const compared = await compareChain(deps, workspaceId, {
    signed: signed ?? UNSIGNED,
    sizes: [Math.min(acceptSize ?? headSize, headSize), headSize],
  })
  const [chain = UNSIGNED] = compared.trees
  if (signed !== null && compared.unchangedSize === signed.size) return null
  return {
    reason: reasonOf({ stored, signed, isDamaged }, headSize),
    signed,
    publishedSize: checkpoint?.size ?? null,
    origin: signed?.origin ?? ownOrigin(checkpoint, workspaceId),
    stored,
    chain,
    headSize,
    unchangedSize: signed === null ? 0 : compared.unchangedSize,
  }
}

/** The database could name another workspace's ledger. */
function ownOrigin(checkpoint: Checkpoint | null, workspaceId: WorkspaceId): string | null {
  return checkpoint?.origin.endsWith(`/${workspaceId}`) ? checkpoint.origin : null
}

function reasonOf(
  { stored, signed, isDamaged }: Pick<LedgerFork, 'stored' | 'signed'> & { isDamaged: boolean },
  headSize: number,
): string {
  if (stored === null) return 'the last signed state is missing from the archive'
  if (isDamaged) return 'the last signed state in the archive is damaged'
  if (signed === null) {
    return 'the last signed state in the archive is not signed with a key of this service'
  }
  if (headSize < signed.size) return 'the chain is shorter than what was signed'
  return 'the events are not those that were signed'
}

/**
 * The trees of these sizes, in ascending order, and how many events are certainly those that were signed: what was
 * signed is known as the roots of perfect subtrees, so the chain is compared at the end of each of them.
 */
async function compareChain(
  deps: TreeDeps,
  workspaceId: WorkspaceId,
  { signed, sizes }: { signed: ChainTree; sizes: readonly number[] },
): Promise<{ trees: ChainTree[]; unchangedSize: number }> {
  const headSize = sizes.at(-1) ?? 0
  const bounds = boundsOf(signed.size).filter((end) => end <= headSize)
  let tree: ChainTree = UNSIGNED
  const trees: ChainTree[] = sizes[0] === 0 ? [tree] : []
  let unchangedSize = 0
  for (const end of new Set([...bounds, ...sizes].toSorted((a, b) => a - b))) {
    tree = await extendTo(deps, workspaceId, tree, end)
    const nth = bounds.indexOf(end)
    const isUnchanged = nth >= 0 && startsWith(signed.frontier, tree.frontier)
    const isLast = end === signed.size
    if (isUnchanged && (!isLast || tree.lastHash === signed.lastHash)) unchangedSize = end
    if (sizes.includes(end) && end > 0) trees.push(tree)
  }
  return { trees, unchangedSize }
}

/** Where the perfect subtrees of a tree end. */
function boundsOf(size: number): number[] {
  let end = 0
  return perfectHeights(size).map((height) => (end += 2 ** height))
}

function startsWith(frontier: Frontier, start: Frontier): boolean {
  return start.every((hash, nth) => frontier[nth]?.equals(hash) === true)
}

async function extendTo(
  deps: TreeDeps,
  workspaceId: WorkspaceId,
  tree: ChainTree,
  end: number,
): Promise<ChainTree> {
  let extended = tree
  while (extended.size < end) {
    const toSize = Math.min(end, extended.size + EVENTS_PER_READ)
    const { leaves, lastHash } = await readLeaves(deps, workspaceId, { start: extended, toSize })
    const { frontier } = await growTree(extended, leaves)
    extended = { size: toSize, frontier, lastHash: lastHash ?? extended.lastHash }
  }
  return extended
}

/** Copies the object with the last signed state to where nothing overwrites it. Returns the key of the copy. */
export async function keepReplaced(
  archive: ObjectStore,
  { workspaceId, bytes, nowMs }: { workspaceId: WorkspaceId; bytes: Buffer; nowMs: number },
): Promise<string> {
  const time = new Date(nowMs).toISOString().replaceAll(/[^0-9TZ]/g, '')
  const key = `${stateKeyOf(workspaceId)}.replaced-${time}`
  const tag = await archive.replace(key, { bytes, tag: null })
  const written = tag === null ? await archive.readTagged(key) : null
  if (written && !written.bytes.equals(bytes)) throw new Error(`${key} already exists`)
  return key
}

export const rootText = ({ frontier }: Pick<SignedTree, 'frontier'>): string =>
  rootOf(frontier).toString('base64')
