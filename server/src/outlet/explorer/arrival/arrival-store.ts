import { sql } from 'kysely'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { TimeRange } from '../histogram/rollup-ranges.ts'

type ArrivalQuery = {
  workspaceId: WorkspaceId
  /** No event below it was received within the range. */
  fromSeq: number
  /** By time of receipt. */
  range: TimeRange
  /** The starts of the bars. */
  bars: readonly number[]
  lateMs: number
}

/** The events that were received during one bar. */
type ArrivalCount = { bar: number; events: number; late: number }

/** Counts events by time of receipt. Those whose timestamp is further away than `lateMs` are late. */
export async function countArrivals(
  db: Queryable,
  { workspaceId, fromSeq, range, bars, lateMs }: ArrivalQuery,
): Promise<ArrivalCount[]> {
  const starts = bars.slice(1).map((startMs) => new Date(startMs))
  const lateAfter = sql`${lateMs}::int * interval '1 millisecond'`
  const { rows } = await sql<ArrivalCount>`
    select width_bucket(received_at, ${starts}::timestamptz[]) as bar,
           count(*) as events,
           count(*) filter (
             where ts < received_at - ${lateAfter} or ts > received_at + ${lateAfter}) as late
      from event
     where workspace_id = ${workspaceId}
       and seq >= ${fromSeq}
       and received_at >= ${new Date(range.fromMs)}
       and received_at < ${new Date(range.toMs)}
     group by 1`.execute(db)
  return rows
}
