import type { EventId, SealedEvent } from '../../ledger/event.ts'
import { NO_FILTER } from '../../ledger/filter/event-filter.ts'
import type { HotPage } from '../../ledger/hot/hot-page.ts'
import { readHotPage } from '../../ledger/hot/hot-page-store.ts'
import {
  type EncodedSegment,
  SEGMENT_ROWS_MAX,
  SegmentWriter,
} from '../../ledger/segment/segment.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Database } from '../../platform/pg/database.ts'
import { formatUtcMs } from '../../platform/time/utc-time.ts'
import { ArchiveRefusedError } from './archive-deps.ts'

/** A run of a chain, both ends included. */
type HotRun = { workspaceId: WorkspaceId; fromSeq: number; toSeq: number }

/** A segment that has not been written yet. All its events were received in `month` (`YYYY-MM`). */
export type EncodedRun = EncodedSegment & { month: string; lastId: EventId }

/** The size of a row group. */
const ROWS_PER_PAGE_MAX = 2_500
/** Target size. It is half the maximum, because a page above the maximum is read twice. */
const PAGE_CHARACTERS = 4 * 1_024 * 1_024
/** Approximate limit for a segment, before compression. */
const SEGMENT_CHARACTERS_MAX = 48 * 1_024 * 1_024

/** Encodes the events of a run as segments of limited size. Each covers one month of receipt. */
export async function* encodeRuns(
  database: Database,
  run: HotRun,
): AsyncGenerator<EncodedRun, void, void> {
  let writer = new SegmentWriter()
  let characters = 0
  let last: SealedEvent | null = null
  for await (const events of readPages(database, run)) {
    for (const event of events) {
      characters += sizeOf(event)
      const isFull = writer.rows === SEGMENT_ROWS_MAX || characters > SEGMENT_CHARACTERS_MAX
      if (last !== null && (isFull || monthOf(event) !== monthOf(last))) {
        yield { ...writer.finish(), month: monthOf(last), lastId: last.id }
        writer = new SegmentWriter()
        characters = sizeOf(event)
      }
      writer.add(event)
      last = event
    }
    // Yields to the event loop, because a row group takes about 40 ms.
    await new Promise(setImmediate)
  }
  if (last !== null) yield { ...writer.finish(), month: monthOf(last), lastId: last.id }
}

/** Reads the events page by page, one page ahead. Throws if an event is missing. */
async function* readPages(
  database: Database,
  { workspaceId, fromSeq, toSeq }: HotRun,
): AsyncGenerator<readonly SealedEvent[], void, void> {
  const fetch = (seq: number, limit: number): Promise<HotPage> => {
    const page = readHotPage(database, {
      workspaceId,
      fromSeq: seq,
      toSeq,
      filter: NO_FILTER,
      limit,
    })
    // Prevents an unhandled rejection. The error surfaces at the await.
    page.catch(() => {})
    return page
  }
  if (fromSeq > toSeq) return
  let nextSeq = fromSeq
  let ahead = fetch(nextSeq, ROWS_PER_PAGE_MAX)
  while (nextSeq <= toSeq) {
    const { events, scannedSeq: lookedSeq } = await ahead
    const missing = events.findIndex(({ seq }, index) => seq !== nextSeq + index)
    const goodEnd = missing === -1 ? nextSeq + events.length : nextSeq + missing
    if (goodEnd !== lookedSeq + 1) {
      throw new ArchiveRefusedError(
        `Event ${goodEnd} of workspace ${workspaceId} is missing. Run annals verify.`,
      )
    }
    nextSeq = lookedSeq + 1
    if (nextSeq <= toSeq) ahead = fetch(nextSeq, rowsPerPage(events))
    yield events
  }
}

function rowsPerPage(events: readonly SealedEvent[]): number {
  const characters = events.reduce((sum, event) => sum + sizeOf(event), 0)
  const rows = Math.floor(PAGE_CHARACTERS / (characters / events.length))
  return Math.max(1, Math.min(ROWS_PER_PAGE_MAX, rows))
}

function sizeOf({ actor, resource, metadata }: SealedEvent): number {
  return 512 + (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
}

function monthOf({ receivedAtMs }: SealedEvent): string {
  return formatUtcMs(receivedAtMs).slice(0, 7)
}
