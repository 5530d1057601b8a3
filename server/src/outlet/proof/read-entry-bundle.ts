import { ApiError } from '../../errors.ts'
import { coreText, type EventCore } from '../../ledger/chain.ts'
import { NO_FILTER } from '../../ledger/filter/event-filter.ts'
import { eventsOf } from '../../ledger/hot/hot-page.ts'
import { readEvents } from '../../ledger/reader.ts'
import { archiveRefusal, archiveRestoring } from '../../ledger/segment/archive-refusal.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { requestRestores } from '../../ledger/segment/restore.ts'
import { listCores } from '../../ledger/tree/core-store.ts'
import { TILE_WIDTH } from '../../ledger/tree/tile.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { rowSlice } from '../../platform/scheduling/row-cost.ts'
import { hasExports, type Plan } from '../../tenancy/plans.ts'

type EntryReads = {
  database: Database
  archive: ObjectStore
  cache: ColdCache
  /** Waits for a slot to use the database. */
  acquire: () => Promise<Disposable>
  acquireArchiveRead: () => Promise<Disposable>
  /** Limits the check of a segment that has to be restored. */
  checkMs: number
  signal: AbortSignal
}

const PAGE = { rows: TILE_WIDTH, bytes: 1_024 * 1_024, mayBeLarge: true }
const LENGTH_BYTES = 2

/**
 * The cores of a run of at most 256 events, as an entry bundle of C2SP tlog-tiles: each with its length in two
 * bytes. They contain commitments, but no personal data. A core has a few kilobytes at most.
 */
export async function readEntryBundle(
  deps: EntryReads,
  run: { workspaceId: WorkspaceId; number: number; width: number; plan: Plan },
): Promise<Buffer> {
  const afterSeq = run.number * TILE_WIDTH
  const range = { workspaceId: run.workspaceId, afterSeq, toSeq: afterSeq + run.width }
  const hot = await readHot(deps, { ...range, limit: run.width })
  if (hot.length === run.width) return await bundleOf(hot)
  if (!hasExports(run.plan)) {
    throw new ApiError('plan_required', {
      message: 'These events are archived, and reading them requires a plan with exports.',
    })
  }
  const events: EventCore[] = []
  const all = { workspaceId: run.workspaceId, fromSeq: afterSeq + 1, toSeq: range.toSeq }
  try {
    for await (const page of readEvents(deps, all, NO_FILTER, () => PAGE)) {
      events.push(...eventsOf(page))
    }
  } catch (error) {
    if (!(error instanceof SegmentColdError)) throw archiveRefusal(error)
    const { archive, checkMs, signal } = deps
    await requestRestores(archive, [error.segment], { checkMs, signal }).catch((cause: unknown) => {
      throw archiveRefusal(cause)
    })
    throw archiveRestoring()
  }
  return await bundleOf(events)
}

async function readHot(
  { database: { db }, acquire }: EntryReads,
  range: Parameters<typeof listCores>[1],
): Promise<EventCore[]> {
  using _slot = await acquire()
  return await listCores(db, range)
}

/** In slices of the company's share of the main thread, because a bundle takes milliseconds. */
async function bundleOf(events: readonly EventCore[]): Promise<Buffer> {
  const parts: Buffer[] = []
  const slice = rowSlice()
  await slice.next()
  for (const event of events) {
    const entry = Buffer.from(coreText(event))
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt16BE(entry.length)
    parts.push(length, entry)
    if (slice.isOver) await slice.next()
  }
  return Buffer.concat(parts)
}
