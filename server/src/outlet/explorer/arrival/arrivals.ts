import { findSeqAt } from '../../../ledger/chain-search.ts'
import { readHead } from '../../../ledger/event-store.ts'
import { countRun } from '../../../ledger/hot/hot-page-store.ts'
import { readArchivedSeq } from '../../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { MINUTE_MS } from '../../../platform/time/time-units.ts'
import type { OffsetOf } from '../../../platform/time/time-zone.ts'
import { countArrivals } from './arrival-store.ts'
import { type Bars, chooseStepS, listBars } from '../histogram/histogram-step.ts'
import type { TimeRange } from '../histogram/rollup-ranges.ts'
import type { Hot, Scope, Searches } from '../searches.ts'

/** An event whose timestamp is further away from its time of receipt is late. */
const LATE_MS = 5 * MINUTE_MS

/** The part of the chain that isn't archived, and how many of its events are missing. */
type HotSequence = { firstSeq: number; lastSeq: number; missing: number }

/** When the events of a workspace were received, compared with the same length of time before. */
export type Arrivals = {
  range: TimeRange
  stepS: number
  bars: Bars
  /** One count per bar. */
  counts: number[]
  previousCounts: number[]
  late: number
  /** Null if all events are archived, or there are none. */
  sequence: HotSequence | null
}

type Period = Pick<Arrivals, 'counts' | 'late'>

export async function readArrivals(
  searches: Searches,
  scope: Omit<Scope, 'workspaceIds'> & { workspaceId: WorkspaceId },
  { range, offsetOf }: { range: TimeRange; offsetOf: OffsetOf },
): Promise<Arrivals> {
  const stepS = chooseStepS(range, offsetOf)
  const bars = listBars(range, stepS, offsetOf)
  const lengthMs = range.toMs - range.fromMs
  const before = { fromMs: range.fromMs - lengthMs, toMs: range.fromMs }
  const startsBefore = bars.starts.map((startMs) => startMs - lengthMs)
  const workspaceIds = [scope.workspaceId]
  const [found] = await searches.readEach({ ...scope, workspaceIds }, async (db, id, hot) => ({
    current: await readPeriod(db, id, { hot, range, starts: bars.starts }),
    previous: await readPeriod(db, id, { hot, range: before, starts: startsBefore }),
    sequence: await readSequence(db, id),
  }))
  const counts = bars.starts.map(() => 0)
  const { current, previous, sequence } = found ?? {
    current: { counts, late: 0 },
    previous: { counts },
    sequence: null,
  }
  return { range, stepS, bars, ...current, previousCounts: previous.counts, sequence }
}

async function readPeriod(
  db: Queryable,
  workspaceId: WorkspaceId,
  { hot, range, starts }: { hot: Hot; range: TimeRange; starts: readonly number[] },
): Promise<Period> {
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const search = { atMs: range.fromMs, afterSeq: hot.floorSeq, headSeq }
  const fromSeq = await findSeqAt(db, workspaceId, search)
  const query = { workspaceId, fromSeq, range, bars: starts, lateMs: LATE_MS }
  const found = await countArrivals(db, query)
  const counts = starts.map(() => 0)
  for (const { bar, events } of found) counts[bar] = events
  return { counts, late: found.reduce((sum, { late }) => sum + late, 0) }
}

/** Not only for the range, because a missing event has no time of receipt. */
async function readSequence(db: Queryable, workspaceId: WorkspaceId): Promise<HotSequence | null> {
  const lastSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const firstSeq = (await readArchivedSeq(db, workspaceId)) + 1
  if (firstSeq > lastSeq) return null
  const present = await countRun(db, { workspaceId, fromSeq: firstSeq, toSeq: lastSeq })
  return { firstSeq, lastSeq, missing: lastSeq - firstSeq + 1 - present }
}
