import { findSeqAt } from '../../ledger/chain-search.ts'
import { readHead } from '../../ledger/event-store.ts'
import { readArchivedSeq } from '../../ledger/segment/segment-store.ts'
import type { Connection } from '../../platform/pg/database.ts'
import { Database } from '../../platform/pg/database.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import { type ArchiveDeps, ArchiveUnreachableError, OtherArchiveError } from './archive-deps.ts'
import { refuseOtherArchive } from './archive-identity.ts'
import {
  type ArchivedWorkspace,
  dropPartitionIfEmpty,
  listArchivedWorkspaces,
  listPastPartitions,
  readUnneededSeq,
  tryLockArchive,
  unlockArchive,
} from './archive-store.ts'
import { type ArchivedRun, archiveWorkspace } from './archive-workspace.ts'
import { refuseWrongClock } from './check-clock.ts'
import { refuseUnreachable } from './check-reach.ts'
import { clearDrafts } from './clear-drafts.ts'
import { ReadBack } from './read-back.ts'

type ArchiveRequest = {
  /** Archives events received before this time. If null, each plan's hot time decides. */
  beforeMs: number | null
  /** A small run waits until it is this much overdue, to avoid tiny files. */
  thresholds: { eventsMin: number; overdueMs: number }
}

/** What a run archived, and what it skipped and why. */
export type ArchiveReport = {
  events: number
  workspaces: number
  failed: number
  /** Why the storage was refused for some of the failed workspaces. */
  refusals: string[]
  /** Events that are due, but that a webhook has yet to see or send. */
  eventsHeld: number
  /** Workspaces that another archiver is working on. */
  workspacesBusy: number
}

type LedgerDeps = Omit<ArchiveDeps, 'readBack'> & {
  connection: Connection
  cutSignal?: AbortSignal
  /** A thread that outlives the run, for callers that archive often: starting one takes 0.2 s of CPU time. */
  readBack?: ReadBack
  /** Called for each workspace that could not be archived, even if the whole run fails later. */
  onFailure?: (workspace: ArchivedWorkspace) => void
}

/** Distinct messages in the report. The log has all of them. */
const REFUSALS_MAX = 3

/**
 * Archives the due events of every workspace and drops partitions that became empty. Throws an
 * `ArchiveUnreachableError` if the storage lacks the newest segment or isn't the archive of this database,
 * and an `ArchiveClockError` if the clock is too far off to tell which events are due.
 */
export async function archiveLedger(
  deps: LedgerDeps,
  request: ArchiveRequest,
  signal: AbortSignal,
): Promise<ArchiveReport> {
  await refuseUnreachable(deps)
  await refuseOtherArchive(deps)
  if (request.beforeMs === null) await refuseWrongClock(deps)
  // Read once, because the clock could be changed during the run.
  const nowMs = deps.clock()
  await using stack = new AsyncDisposableStack()
  const readBack = deps.readBack ?? stack.use(new ReadBack())
  const report: ArchiveReport = {
    events: 0,
    workspaces: 0,
    failed: 0,
    refusals: [],
    eventsHeld: 0,
    workspacesBusy: 0,
  }
  for (const workspace of await listArchivedWorkspaces(deps.database.db)) {
    if (signal.aborted) break
    try {
      const { moved, held, isOvertaken } = await archiveOne(
        { ...deps, readBack },
        workspace,
        { ...request, nowMs },
        signal,
      )
      report.events += moved
      report.eventsHeld += held
      if (moved > 0) report.workspaces += 1
      if (isOvertaken) report.workspacesBusy += 1
    } catch (error) {
      if (error instanceof OtherArchiveError) throw error
      // One workspace's failure must not stop the others.
      report.failed += 1
      deps.onFailure?.(workspace)
      if (error instanceof ArchiveUnreachableError) recordRefusal(report.refusals, error.message)
      const { workspaceId } = workspace
      deps.logger.error({ event: 'archive.failed', workspaceId, err: error })
    }
  }
  if (report.events > 0) await dropEmptyPartitions(deps)
  return report
}

function recordRefusal(refusals: string[], sentence: string): void {
  if (refusals.length < REFUSALS_MAX && !refusals.includes(sentence)) refusals.push(sentence)
}

async function archiveOne(
  deps: ArchiveDeps,
  { workspaceId, plan }: ArchivedWorkspace,
  { beforeMs, thresholds, nowMs }: ArchiveRequest & { nowMs: number },
  signal: AbortSignal,
): Promise<ArchivedRun & { held: number }> {
  const atMs = beforeMs ?? hotSinceMsOf(plan, nowMs)
  return await deps.database.db.connection().execute(async (connection) => {
    if (!(await tryLockArchive(connection, workspaceId))) {
      return { moved: 0, held: 0, isOvertaken: true }
    }
    try {
      // Checked before clearing drafts too: another archive's drafts can't be deleted from this storage.
      await refuseOtherArchive(deps)
      await refuseUnreachable(deps, workspaceId)
      await clearDrafts(deps, workspaceId)
      const { toSeq, held } = await findDue(deps, workspaceId, { atMs, thresholds })
      return { ...(await archiveWorkspace(deps, { workspaceId, toSeq }, signal)), held }
    } finally {
      // If unlocking fails, the connection is broken, which released the lock anyway.
      await unlockArchive(connection, workspaceId).catch(() => {})
    }
  })
}

/**
 * Finds the last event to archive now: it and all events before it are due. Events that a webhook has yet
 * to send are held, and must stay in the table.
 */
async function findDue(
  { database: { db } }: ArchiveDeps,
  workspaceId: ArchivedWorkspace['workspaceId'],
  { atMs, thresholds }: { atMs: number; thresholds: ArchiveRequest['thresholds'] },
): Promise<{ toSeq: number; held: number }> {
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const archivedSeq = await readArchivedSeq(db, workspaceId)
  const dueSeq = (await findSeqAt(db, workspaceId, { atMs, headSeq })) - 1
  const unneededSeq = (await readUnneededSeq(db, workspaceId)) ?? headSeq
  const toSeq = Math.min(dueSeq, unneededSeq)
  const held = Math.max(0, dueSeq - Math.max(toSeq, archivedSeq))
  if (toSeq - archivedSeq >= thresholds.eventsMin) return { toSeq, held }
  const overdueMs = atMs - thresholds.overdueMs
  const overdueSeq = (await findSeqAt(db, workspaceId, { atMs: overdueMs, headSeq })) - 1
  return { toSeq: overdueSeq > archivedSeq ? toSeq : archivedSeq, held }
}

/** Runs as the table's owner, because no other role may drop its partitions. */
async function dropEmptyPartitions({
  connection,
  clock,
  logger,
  cutSignal,
}: LedgerDeps): Promise<void> {
  await using owner = new Database({
    connection,
    role: 'owner',
    connectionsMax: 1,
    logger,
    cutSignal,
  })
  for (const name of await listPastPartitions(owner.db, new Date(clock()))) {
    if (await dropPartitionIfEmpty(owner.db, name)) {
      logger.info({ event: 'partition.dropped', partition: name })
    }
  }
}
