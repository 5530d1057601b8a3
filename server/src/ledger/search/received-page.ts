import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { type ListQuery, readFewReceived } from '../event-list-store.ts'
import type { PagePosition, PartialPage } from '../event-page.ts'
import { earliestReceiptMs, idFloor, readHead } from '../event-store.ts'
import type { HotFloor } from '../hot/hot-floor.ts'
import { findRunStart, findSeqOfId, readReceipt } from '../hot/hot-floor-store.ts'
import { readRunBackward } from '../table-run-store.ts'
import { findCandidates, type Run } from './candidate-runs.ts'

type ReceivedQuery = ListQuery & { hot: HotFloor }

/** Searches for one request in the order of receipt. */
export class ReceivedSearch {
  readonly #runs = new Map<WorkspaceId, readonly Run[] | null>()

  /**
   * Reads a page of one workspace in the order of its chain, the last received first. If few events can match by
   * an index, it reads these and sorts them. Otherwise it reads the chain backward, `rowsMax` events at a time and
   * without the runs that can't match, so a page can be short or even empty.
   */
  async readPage(db: Queryable, query: ReceivedQuery): Promise<PartialPage> {
    const few = await readFewReceived(db, query)
    if (few !== null) return few
    const { workspaceId, filter, rowsMax, limit, bytesMax } = query
    const span = await findSpan(db, query)
    const runs = (await this.#findRuns(db, query)) ?? [span]
    const isLeft = ({ firstSeq, lastSeq }: Run) =>
      firstSeq <= span.lastSeq && lastSeq >= span.firstSeq && span.firstSeq <= span.lastSeq
    const left = runs.filter(isLeft).toSorted((a, b) => b.firstSeq - a.firstSeq)
    for (const run of left) {
      const fromSeq = Math.max(run.firstSeq, span.firstSeq)
      const toSeq = Math.min(run.lastSeq, span.lastSeq)
      const start = await findRunStart(db, { workspaceId, fromSeq, toSeq, rowsMax })
      if (start === null) continue
      const part = { workspaceId, fromSeq: start.seq, toSeq, filter, limit, bytesMax }
      const { events, nextSeq } = await readRunBackward(db, part)
      const hasMore = left.some(({ firstSeq }) => Math.max(firstSeq, span.firstSeq) <= nextSeq)
      return { events, next: hasMore ? await readPosition(db, workspaceId, nextSeq + 1) : null }
    }
    return { events: [], next: null }
  }

  /** The runs that may have matches, for all rounds of the request. Null if blocks can't rule out any event. */
  async #findRuns(
    db: Queryable,
    { workspaceId, filter }: ListQuery,
  ): Promise<readonly Run[] | null> {
    const known = this.#runs.get(workspaceId)
    if (known !== undefined) return known
    const candidates = await findCandidates(db, { workspaceId, filter })
    const unseen = candidates && { firstSeq: candidates.seenSeq + 1, lastSeq: candidates.headSeq }
    const runs = unseen && [...candidates.blocks.flatMap((block) => block.runs), unseen]
    this.#runs.set(workspaceId, runs)
    return runs
  }
}

/** The part of the chain after the position that can have matches. */
async function findSpan(
  db: Queryable,
  { workspaceId, filter, hot: { floorSeq }, after }: ReceivedQuery,
): Promise<Run> {
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const chain = { workspaceId, afterSeq: floorSeq, headSeq }
  const earliestMs = earliestReceiptMs(filter, 0)
  return {
    firstSeq: earliestMs === 0 ? floorSeq + 1 : await findSeqOfId(db, chain, idFloor(earliestMs)),
    lastSeq: after === null ? headSeq : (await findSeqOfId(db, chain, after.id)) - 1,
  }
}

async function readPosition(
  db: Queryable,
  workspaceId: WorkspaceId,
  seq: number,
): Promise<PagePosition | null> {
  const { id } = await readReceipt(db, workspaceId, seq)
  // The order of receipt doesn't use the timestamp.
  return id === null ? null : { timestampMs: 0, id }
}
