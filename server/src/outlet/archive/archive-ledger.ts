import { findSeqAt, readHead } from '../../ledger/event-store.ts'
import { readArchivedSeq } from '../../ledger/segment-store.ts'
import type { Connection } from '../../platform/pg.ts'
import { Database } from '../../platform/pg.ts'
import { PLAN_TERMS } from '../../tenancy/plans.ts'
import {
  type ArchivedWorkspace,
  dropPartitionIfEmpty,
  listArchivedWorkspaces,
  listPastPartitions,
  readUnneededSeq,
  tryLockArchive,
  unlockArchive,
} from './archive-store.ts'
import { type ArchiveDeps, archiveWorkspace } from './archive-workspace.ts'

const DAY_MS = 86_400_000

export type ArchiveWish = {
  /** Events received before this; null: by each plan's hot time. */
  beforeMs: number | null
  /** A small run waits until it is this much overdue, so that files do not become tiny. */
  patience: { eventsMin: number; overdueMs: number }
}

/** Archives what is due of every workspace, and drops partitions that became empty. */
export async function archiveLedger(
  deps: ArchiveDeps & { connection: Connection },
  wish: ArchiveWish,
  signal: AbortSignal,
): Promise<{ events: number; workspaces: number; failed: number }> {
  let events = 0
  let workspaces = 0
  let failed = 0
  for (const workspace of await listArchivedWorkspaces(deps.database.db)) {
    if (signal.aborted) break
    try {
      const moved = await archiveOne(deps, workspace, wish, signal)
      events += moved
      if (moved > 0) workspaces += 1
    } catch (error) {
      // One workspace that cannot be archived is no reason to leave the others.
      failed += 1
      const { workspaceId } = workspace
      deps.logger.error({ event: 'archive.failed', workspaceId, err: error })
    }
  }
  if (events > 0) await dropEmptyPartitions(deps)
  return { events, workspaces, failed }
}

async function archiveOne(
  deps: ArchiveDeps,
  { workspaceId, plan }: ArchivedWorkspace,
  { beforeMs, patience }: ArchiveWish,
  signal: AbortSignal,
): Promise<number> {
  const atMs = beforeMs ?? deps.clock() - PLAN_TERMS[plan].hotDays * DAY_MS
  return await deps.database.db.connection().execute(async (connection) => {
    if (!(await tryLockArchive(connection, workspaceId))) return 0
    try {
      const toSeq = await lastDueSeq(deps, workspaceId, { atMs, patience })
      return await archiveWorkspace(deps, { workspaceId, toSeq }, signal)
    } finally {
      await unlockArchive(connection, workspaceId)
    }
  })
}

/** The last event to archive now. What a webhook has still to send is needed here. */
async function lastDueSeq(
  { database: { db } }: ArchiveDeps,
  workspaceId: ArchivedWorkspace['workspaceId'],
  { atMs, patience }: { atMs: number; patience: ArchiveWish['patience'] },
): Promise<number> {
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const archivedSeq = await readArchivedSeq(db, workspaceId)
  const dueSeq = (await findSeqAt(db, workspaceId, { atMs, headSeq })) - 1
  const unneededSeq = (await readUnneededSeq(db, workspaceId)) ?? headSeq
  const toSeq = Math.min(dueSeq, unneededSeq)
  if (toSeq - archivedSeq >= patience.eventsMin) return toSeq
  const overdueMs = atMs - patience.overdueMs
  const overdueSeq = (await findSeqAt(db, workspaceId, { atMs: overdueMs, headSeq })) - 1
  return overdueSeq > archivedSeq ? toSeq : archivedSeq
}

/** As the owner of the table, because no other role may drop a part of it. */
async function dropEmptyPartitions({
  connection,
  clock,
  logger,
}: ArchiveDeps & { connection: Connection }): Promise<void> {
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  for (const name of await listPastPartitions(owner.db, new Date(clock()))) {
    if (await dropPartitionIfEmpty(owner.db, name)) {
      logger.info({ event: 'partition.dropped', partition: name })
    }
  }
}
