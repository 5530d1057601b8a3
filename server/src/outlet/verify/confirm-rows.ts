import type { ChainHead } from '../../ledger/event.ts'
import { ChainCursor } from '../../ledger/hot/chain-cursor.ts'
import { ChainRowReader } from '../../ledger/hot/chain-rows-store.ts'
import { boundsOfRows } from '../../ledger/hot/hot-page.ts'
import { FIELDS_WITH_FACETS, HotRow } from '../../ledger/hot/hot-row.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Database } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import type { SliceOwner } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { runAfter } from './verify-entry.ts'

type Stretch = {
  workspaceId: WorkspaceId
  /** The last verified event. */
  head: ChainHead
  toSeq: number
  eventsPerRead: number
  owner: SliceOwner
}

/**
 * Follows a chain for as long as it can confirm its rows, and yields its head after each page. Ends at `toSeq`, or
 * before the first event that needs `entryProblem`, which finds out what is wrong with it, if anything.
 */
export async function* confirmRows(
  database: Pick<Database, 'pool' | 'db'>,
  { workspaceId, head, toSeq, eventsPerRead, owner }: Stretch,
  onRow: (cursor: ChainCursor, row: HotRow) => void,
): AsyncGenerator<ChainHead, void, void> {
  const cursor = new ChainCursor(head, workspaceId)
  const slice = new TimeSlice(owner)
  const rows = new ChainRowReader(database)
  while (cursor.seq < toSeq) {
    const limit = Math.min(eventsPerRead, toSeq - cursor.seq)
    const run = { workspaceId, limit, ...runAfter(cursor.head) }
    const bytes = await withRowOwner(owner, () => rows.read(run))
    if (bytes === null) return
    const row = new HotRow(bytes, FIELDS_WITH_FACETS)
    const { start, end } = boundsOfRows(bytes)
    let at = start
    while (at < end && row.hasFixedSizes(at)) {
      const next = row.moveTo(at)
      if (!cursor.advance(row)) break
      at = next
      onRow(cursor, row)
      if (slice.isOver) await slice.next()
    }
    if (at > start) yield cursor.head
    if (at < end || start === end) return
  }
}
