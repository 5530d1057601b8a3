import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/kept-plan.ts'
import type { Queryable } from '../platform/pg.ts'
import { type EventFilter, INDEXED_FIELDS, type IndexedField, NO_FILTER } from './event-filter.ts'
import { isNewer, type PagePlace, type PartialPage } from './event-page.ts'
import {
  afterCondition,
  earliestReceiptMs,
  filterConditions,
  hotFromCondition,
  idFloor,
  readPage,
} from './event-store.ts'

export type ListQuery = {
  workspaceId: WorkspaceId
  filter: EventFilter
  /** Events received before this are not hot. */
  hotSinceMs: number
  /** The first hot event of the chain. If it is known, it replaces `hotSinceMs`. */
  hotFromId?: string
  after: PagePlace | null
  limit: number
  bytesMax: number
  /** How many rows to read at most if no index has exactly the events of the filter. */
  rowsMax: number
}

/**
 * A page of one workspace, newest first. With at most one filter, its events are a range of an index, so
 * a page costs the same wherever it lies and however many events there are. With more, the events are
 * searched in the index of one filter, `rowsMax` rows at a time, so a page can be short or even empty.
 */
export async function listEvents(db: Queryable, query: ListQuery): Promise<PartialPage> {
  return needsScan(query.filter) ? await scanEvents(db, query) : await readRange(db, query)
}

/** Whether events have to be compared with the filter because no index has exactly those that match. */
export function needsScan(filter: EventFilter): boolean {
  const isIndexed = filter.traceId === null && filter.text === null && filter.excluded === null
  return !isIndexed || indexedFieldsOf(filter).length > 1
}

function indexedFieldsOf(filter: EventFilter): IndexedField[] {
  return INDEXED_FIELDS.filter((name) => filter[name] !== null)
}

async function readRange(db: Queryable, query: ListQuery): Promise<PartialPage> {
  const { workspaceId, filter, after, limit } = query
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    ...filterConditions(filter),
    ...(after ? [afterCondition(after)] : []),
    hotIdCondition(query),
    ...hotTimeConditions(query),
  ]
  // One more than requested shows whether there is a further page.
  const page = sql`
    select * from event
     where ${sql.join(conditions, sql` and `)}
     order by ts desc, id desc
     limit ${sql.lit(roundedLimit(limit + 1))}`
  // One index is right whatever the values are, so its plan can be kept. Not for a range with two ends:
  // a plan that doesn't know them expects few rows, and sorts what it finds by any index.
  const hasTwoEnds = filter.fromMs !== null && (filter.toMs !== null || after !== null)
  return await readPage(db, sql`${hasTwoEnds ? sql`` : KEEP_PLAN}${page}`, query)
}

/**
 * Reads the newest `rowsMax` rows of one index and returns those that match. If there are fewer than
 * `limit`, the list goes on after the last row that was read. All statements see the same rows.
 */
async function scanEvents(db: Queryable, query: ListQuery): Promise<PartialPage> {
  return await inSnapshot(db, async (trx) => {
    // A plan that sorts reads all rows of the range first. Every range has an index in the right order.
    await sql`select set_config('enable_sort', 'off', true)`.execute(trx)
    const field = await findRarestField(trx, query)
    const rows = rowsOf(query, field)
    const others: EventFilter = {
      ...query.filter,
      fromMs: null,
      toMs: null,
      ...(field && { [field]: null }),
    }
    // Not ordered again: only then does the plan know that it needs few of the rows.
    const page = sql`
      select * from (select * ${rows} limit ${sql.lit(query.rowsMax)}) as scanned
       where ${sql.join([...filterConditions(others), ...hotTimeConditions(query)], sql` and `)}
       limit ${sql.lit(roundedLimit(query.limit + 1))}`
    const { events, next } = await readPage(trx, page, query)
    if (next !== null) return { events, next }
    const { rows: ends } = await sql<PagePlace>`${placeAt(rows, query.rowsMax)}`.execute(trx)
    return { events, next: ends[0] ?? null }
  })
}

async function inSnapshot<T>(db: Queryable, read: (trx: Queryable) => Promise<T>): Promise<T> {
  if (db.isTransaction) return await read(db)
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return await snapshot.execute(read)
}

/** So few rows of an index take a fraction of a millisecond. */
const SAMPLED_ROWS = 500

/**
 * The field whose value is rarest from here on: a sample of its rows reaches back furthest. Statistics
 * could tell without reading, but they don't know the workspace or what has changed recently.
 */
async function findRarestField(trx: Queryable, query: ListQuery): Promise<IndexedField | null> {
  const fields = indexedFieldsOf(query.filter)
  const [first = null] = fields
  if (fields.length <= 1) return first
  const samples = fields.map(
    (field) =>
      sql`(${placeAt(rowsOf(query, field), SAMPLED_ROWS, sql`${sql.lit(field)} as field,`)})`,
  )
  const { rows } = await sql<PagePlace & { field: IndexedField }>`
    ${sql.join(samples, sql` union all `)}`.execute(trx)
  const few = fields.find((field) => rows.every((row) => row.field !== field))
  const [oldest] = rows.toSorted((a, b) => (isNewer(a, b) ? 1 : -1))
  return few ?? oldest?.field ?? first
}

/** The end of a statement that reads the rows with the value of one field, or all, newest first. */
function rowsOf(query: ListQuery, field: IndexedField | null): RawBuilder<unknown> {
  const { workspaceId, filter, after } = query
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    ...(field ? filterConditions({ ...NO_FILTER, [field]: filter[field] }) : []),
    ...(filter.fromMs === null ? [] : [sql`ts >= ${hiddenTime(filter.fromMs)}`]),
    ...(filter.toMs === null ? [] : [sql`ts < ${hiddenTime(filter.toMs)}`]),
    ...(after ? [afterCondition(after)] : []),
    hotIdCondition(query),
  ]
  return sql`from event where ${sql.join(conditions, sql` and `)} order by ts desc, id desc`
}

/**
 * A time that PostgreSQL doesn't know when it plans. If it is later than its statistics, it would expect
 * a single row, and the index of all events would look as good as the one of the field.
 */
function hiddenTime(ms: number): RawBuilder<unknown> {
  return sql`(select ${new Date(ms)}::timestamptz)`
}

/** Selects the place of a row by its number, from 1; nothing if there are fewer rows. */
function placeAt(
  rows: RawBuilder<unknown>,
  number: number,
  columns: RawBuilder<unknown> = sql``,
): RawBuilder<unknown> {
  return sql`
    select ${columns} (date_part('epoch', ts) * 1000)::bigint as "timestampMs", id
      ${rows} offset ${sql.lit(number - 1)} limit 1`
}

/** An index has the id, so this needs no row, and it selects the partitions. */
function hotIdCondition({ filter, hotSinceMs, hotFromId }: ListQuery): RawBuilder<unknown> {
  if (hotFromId !== undefined) return hotFromCondition(filter, hotFromId)
  return sql`id >= ${idFloor(earliestReceiptMs(filter, hotSinceMs))}::uuid`
}

function hotTimeConditions({ hotSinceMs, hotFromId }: ListQuery): RawBuilder<unknown>[] {
  return hotFromId === undefined ? [sql`received_at >= ${new Date(hotSinceMs)}`] : []
}

const ROUNDED_LIMITS = [51, 201] as const

/**
 * A plan knows that few rows are wanted only if the limit is in its text, and each text is a plan to
 * keep. So a page reads one of two sizes: the default or the maximum.
 */
function roundedLimit(limit: number): number {
  return ROUNDED_LIMITS.find((rounded) => rounded >= limit) ?? limit
}
