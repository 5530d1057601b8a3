import { type RawBuilder, sql } from 'kysely'
import type { Queryable } from '../../platform/pg/database.ts'
import { type ListQuery, matchConditions } from '../event-list-store.ts'
import type { PartialPage } from '../event-page.ts'
import { inOrder, readPage } from '../event-store.ts'
import type { SearchRound } from './candidate-runs.ts'

/** Before and after all events with the same timestamp. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Reads the first matches among the runs, up to where the runs of a later round start. */
export async function readCandidateRuns(
  db: Queryable,
  query: ListQuery,
  { runs, seenSeq, untilMs }: SearchRound,
): Promise<PartialPage> {
  const { workspaceId, order = 'desc', limit } = query
  const until =
    untilMs === null
      ? []
      : [order === 'desc' ? sql`ts > ${new Date(untilMs)}` : sql`ts < ${new Date(untilMs)}`]
  const conditions = sql.join([...matchConditions(query), ...until], sql` and `)
  const page = sql`
    select * from (${eventsInRuns({ workspaceId, runs, seenSeq }, sql`*`, conditions)}) as found
     ${inOrder(order)}
     limit ${limit + 1}`
  const { events, next } = await readPage(db, page, query)
  if (next !== null || untilMs === null) return { events, next }
  return { events, next: { timestampMs: untilMs, id: order === 'desc' ? LAST_ID : FIRST_ID } }
}

/**
 * Selects columns of the events in runs and above `seenSeq`. Each run is read by its sequence numbers: `offset 0`
 * keeps the planner from another index, whose order would mean reading all events.
 */
export function eventsInRuns(
  {
    workspaceId,
    runs,
    seenSeq,
  }: Pick<SearchRound, 'runs' | 'seenSeq'> & Pick<ListQuery, 'workspaceId'>,
  columns: RawBuilder<unknown>,
  conditions: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const firstSeqs = [...runs.map(({ firstSeq }) => firstSeq), seenSeq + 1]
  const lastSeqs = [...runs.map(({ lastSeq }) => lastSeq), Number.MAX_SAFE_INTEGER]
  return sql`
    select matching.*
      from unnest(${firstSeqs}::bigint[], ${lastSeqs}::bigint[]) as run (first_seq, last_seq)
     cross join lateral (
       select ${columns} from event
        where workspace_id = ${workspaceId} and seq >= run.first_seq and seq <= run.last_seq
          and ${conditions}
       offset 0) as matching`
}
