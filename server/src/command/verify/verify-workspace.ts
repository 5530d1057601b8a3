import { requestChainRestores } from '../../ledger/segment/restore.ts'
import { type KeptCheckpoint, TreeCheck } from '../../outlet/proof/check-tree.ts'
import { inspectKeyList, type KeySource } from '../../outlet/proof/key-list/key-list-copies.ts'
import { type ChainStart, confirmChain } from '../../outlet/verify/confirm-chain.ts'
import { SegmentUnreadableError } from '../../outlet/verify/verify-archive.ts'
import { verifyChain } from '../../outlet/verify/verify-ledger.ts'
import { failureOf, outcomeOf, treeOutcomeOf } from '../../outlet/verify/verify-outcome.ts'
import type { RunRange } from '../../outlet/verify/verify-range.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import { type Database, isOutage } from '../../platform/pg/database.ts'
import type { VerifyFinding, WorkspaceResult } from './workspace-result.ts'

export type VerifyDeps = Pick<Database, 'pool' | 'db'> & {
  archive: ObjectStore
  hasArchive: boolean
  keySource: KeySource
}

type WorkspaceOptions = {
  workspaceId: WorkspaceId
  /** Events up to this checkpoint are not read again if the rest of the chain continues them. */
  kept: KeptCheckpoint | null
  /** Null to verify each chain from start to end, as a chain that isn't confirmed is. */
  runRange: RunRange | null
  rangesAheadMax: number
  eventsPerRange?: number
  onProgress?: (events: number) => void
}

export async function verifyWorkspace(
  deps: VerifyDeps,
  options: WorkspaceOptions,
): Promise<WorkspaceResult> {
  const { workspaceId } = options
  try {
    const tree = await openTree(deps, options)
    return (await confirmWorkspace(deps, options, tree)) ?? (await judgeWorkspace(deps, options))
  } catch (error) {
    if (isOutage(error)) throw error
    const finding = await findingOf(deps, workspaceId, error)
    const result = { outcome: failureOf(error), fault: 'unchecked', finding } as const
    return { ...NOTHING, workspaceId, ...result }
  }
}

const NOTHING = { events: 0, skipped: 0, isSigned: false, checkpoint: null }

async function openTree(
  { db, archive, hasArchive, keySource }: VerifyDeps,
  { workspaceId, kept }: WorkspaceOptions,
): Promise<TreeCheck> {
  return await TreeCheck.open({
    db,
    archive: hasArchive ? archive : null,
    workspaceId,
    listKeys: async () => (await inspectKeyList({ db, archive, keySource })).list.keys,
    kept,
  })
}

/** Verifies the chain in ranges. Null if something isn't certainly intact. */
async function confirmWorkspace(
  deps: VerifyDeps,
  options: WorkspaceOptions,
  firstTree: TreeCheck,
): Promise<WorkspaceResult | null> {
  const { workspaceId, kept, runRange } = options
  if (runRange === null) return null
  let tree = firstTree
  let start: ChainStart | null = null
  let isFirst = true
  const open = async () => {
    if (!isFirst) tree = await openTree(deps, options)
    isFirst = false
    const hash = kept && (await tree.resume())
    start = hash === null || kept === null ? null : { seq: kept.size, hash }
    return { start, tree: tree.isSigned ? tree : null }
  }
  try {
    const seq = await confirmChain(deps.db, { ...options, runRange, open })
    if (seq === null || (await tree.finish()) !== null) return null
    const skipped = skippedBy(start)
    const events = seq - skipped
    const verdict = { ok: true, workspaceId, events } as const
    const outcome = outcomeOf(verdict, { skipped })
    const { isSigned, verified } = tree
    const intact = { fault: null, finding: null, isSigned, checkpoint: verified }
    return { workspaceId, outcome, events, skipped, ...intact }
  } catch (error) {
    // Any other error is reported only if the chain itself runs into it.
    if (isOutage(error)) throw error
    return null
  }
}

// A function, because the compiler doesn't know that `open` has set it.
function skippedBy(start: ChainStart | null): number {
  return start?.seq ?? 0
}

/** Verifies the chain from its first event to its last, and names the first bad one. */
async function judgeWorkspace(
  deps: VerifyDeps,
  options: WorkspaceOptions,
): Promise<WorkspaceResult> {
  const { pool, db, archive } = deps
  const { workspaceId } = options
  const tree = await openTree(deps, options)
  let checkedBefore = 0
  const onProgress = (checked: number): void => {
    options.onProgress?.(Math.max(0, checked - checkedBefore))
    checkedBefore = checked
  }
  const steps = { hashes: tree, onProgress }
  const verdict = await verifyChain({ pool, db }, archive, workspaceId, steps)
  const { isSigned } = tree
  const { events } = verdict
  const result = { workspaceId, events, skipped: 0, isSigned, checkpoint: null }
  const finding = { kind: 'BROKEN', workspaceId } as const
  if (!verdict.ok) {
    const { seq, id: eventId, problem } = verdict
    const which = eventId === null ? '' : ` (event ${eventId})`
    const text = `workspace ${workspaceId} at seq ${seq}${which}: ${problem}`
    const outcome = outcomeOf(verdict)
    return { ...result, outcome, fault: 'broken', finding: { ...finding, seq, eventId, text } }
  }
  const problem = await tree.finish()
  if (problem === null) {
    const intact = { fault: null, finding: null, checkpoint: tree.verified }
    return { ...result, ...intact, outcome: outcomeOf(verdict) }
  }
  const text = `workspace ${workspaceId}, its signed tree: ${problem}`
  return {
    ...result,
    outcome: treeOutcomeOf(events, problem),
    fault: 'mismatched',
    finding: { ...finding, seq: null, eventId: null, text },
  }
}

async function findingOf(
  { db, archive }: VerifyDeps,
  workspaceId: WorkspaceId,
  error: unknown,
): Promise<VerifyFinding> {
  const seq = error instanceof SegmentUnreadableError ? error.seq : null
  const finding = { workspaceId, seq, eventId: null }
  const where = `workspace ${workspaceId}${seq === null ? '' : ` at seq ${seq}`}`
  if (error instanceof SegmentUnreadableError && error.isCold) {
    await requestChainRestores(db, archive, error.segment)
    const text = `${where}: the archived files from there on are in a cold storage class. Their restore was requested; run the command again in a few hours.`
    return { ...finding, kind: 'RESTORING', text }
  }
  return { ...finding, kind: 'UNREADABLE', text: `${where}: ${reasonOf(error)}` }
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (error instanceof SegmentUnreadableError || error instanceof StorageError) return text
  // A value that Annals never writes. It must not hide what is wrong with the other workspaces.
  return `something in its rows can't be read: ${text}`
}
