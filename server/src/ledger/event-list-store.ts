import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/pg/kept-plan.ts'
import type { Queryable } from '../platform/pg/database.ts'
import {
  comparesMetadata,
  type EventFilter,
  INDEXED_FIELDS,
  type IndexedField,
  NO_FILTER,
} from './filter/event-filter.ts'
import { comesBefore, type PageOrder, type PagePosition, type PartialPage } from './event-page.ts'
import {
  afterCondition,
  earliestReceiptMs,
  filterConditions,
  hasOneOf,
  hotFromCondition,
  idFloor,
  inOrder,
  readHead,
  readPage,
  VALUE_COLUMNS,
} from './event-store.ts'
import { TIMESTAMP_AHEAD_MS_MAX } from './event.ts'
import { findSeqOfId } from './hot/hot-floor-store.ts'
import { valuesByField } from './filter/exclusion.ts'
import { type ListConditions, NO_CONDITIONS } from './filter/list-conditions.ts'

export type ListQuery = {
  workspaceId: WorkspaceId
  filter: EventFilter
  conditions?: ListConditions
  /** Newest first by default. */
  order?: PageOrder
  /** Events received before this are not hot. */
  hotSinceMs: number
  /** The first hot event of the chain. If it is known, it replaces `hotSinceMs`. */
  hotFromId?: string
  after: PagePosition | null
  limit: number
  bytesMax: number
  /** The maximum number of rows to read if no index contains exactly the events of the filter. */
  rowsMax: number
}

/**
 * Reads a page of one workspace. With at most one filter, the events are a range of an index, so a page
 * costs the same at any position and for any number of events. With more filters, it scans the index of one
 * of them, `rowsMax` rows at a time, so a page can be short or even empty.
 */
export async function readPartialPage(db: Queryable, query: ListQuery): Promise<PartialPage> {
  const { filter, conditions = NO_CONDITIONS } = query
  const run = await findShortRun(db, query)
  if (run !== null) return await readRun(db, query, run)
  if (needsScan(filter, conditions)) return await scanEvents(db, query)
  const listed = listedFieldsOf(filter, conditions)[0]
  return listed ? await readListed(db, query, listed) : await readRange(db, query)
}

/** Whether rows have to be compared with the filter because no index contains exactly those that match. */
export function needsScan(filter: EventFilter, conditions = NO_CONDITIONS): boolean {
  const { seqFrom, seqTo } = conditions
  const unindexed = [
    filter.receivedFromMs,
    filter.receivedToMs,
    filter.traceId,
    filter.actorRole,
    filter.metadata,
    filter.text,
    filter.excluded,
    seqFrom,
    seqTo,
  ]
  const fields = indexedFieldsOf(filter).length + listedFieldsOf(filter, conditions).length
  return fields > 1 || unindexed.some((value) => value !== null)
}

/** A field with several values, of which an event must have one. */
type ListedField = readonly [field: IndexedField, values: readonly string[]]

function listedFieldsOf(
  { anyOf }: EventFilter,
  { categories, actions }: ListConditions,
): ListedField[] {
  return [
    ...(categories === null ? [] : [['category', categories] as const]),
    ...(actions === null ? [] : [['action', actions] as const]),
    ...valuesByField(anyOf ?? []),
  ]
}

/** Whether an index of a field contains all matches, and some others. */
export function hasIndexedField(filter: EventFilter, conditions = NO_CONDITIONS): boolean {
  return indexedFieldsOf(filter).length + listedFieldsOf(filter, conditions).length > 0
}

function indexedFieldsOf(filter: EventFilter): IndexedField[] {
  return INDEXED_FIELDS.filter((name) => filter[name] !== null)
}

type Run = { fromSeq: number; toSeq: number }

/**
 * The run of the chain that the query names, by sequence numbers or by the time of receipt, if it has at most
 * `rowsMax` events.
 */
async function findShortRun(db: Queryable, query: ListQuery): Promise<Run | null> {
  const { workspaceId, filter, conditions = NO_CONDITIONS, rowsMax } = query
  const { receivedFromMs } = filter
  if (conditions.seqFrom === null && conditions.seqTo === null && receivedFromMs === null)
    return null
  // A scan limits how much metadata it compares.
  if (comparesMetadata(filter)) return null
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const receivedSeq =
    receivedFromMs === null
      ? 1
      : await findSeqOfId(db, { workspaceId, afterSeq: 0, headSeq }, idFloor(receivedFromMs))
  const fromSeq = Math.max(conditions.seqFrom ?? 1, receivedSeq)
  const toSeq = Math.min(conditions.seqTo ?? headSeq, headSeq)
  return toSeq - fromSeq < rowsMax ? { fromSeq, toSeq } : null
}

/** Reads the run by its seq, and sorts its matches. The inner limit keeps the planner from another index. */
async function readRun(
  db: Queryable,
  query: ListQuery,
  { fromSeq, toSeq }: Run,
): Promise<PartialPage> {
  const { workspaceId, order, limit, rowsMax } = query
  const page = sql`
    select * from (select * from event
                    where workspace_id = ${workspaceId}
                      and seq >= ${fromSeq} and seq <= ${toSeq}
                    order by seq
                    limit ${sql.lit(rowsMax)}) as run
     where ${sql.join(matchConditions(query), sql` and `)}
     ${inOrder(order)}
     limit ${sql.lit(roundedLimit(limit + 1))}`
  return await readPage(db, page, query)
}

/** All conditions of a query, except for the workspace. */
export function matchConditions(query: ListQuery): RawBuilder<unknown>[] {
  return [
    ...filterConditions(query.filter),
    ...listConditions(query),
    ...afterConditions(query),
    hotIdCondition(query),
    ...hotTimeConditions(query),
  ]
}

async function readRange(db: Queryable, query: ListQuery): Promise<PartialPage> {
  const { filter, after, order, limit } = query
  // Read one more than requested to detect whether there is a next page.
  const page = sql`
    select * from event
     where ${sql.join(rangeConditions(query), sql` and `)}
     ${inOrder(order)}
     limit ${sql.lit(roundedLimit(limit + 1))}`
  // The same index is best for all values, so the plan can be kept. Except for a range with two ends: a
  // plan that doesn't know them expects few rows, and sorts what it finds through any index.
  const hasStart = filter.fromMs !== null || (order === 'asc' && after !== null)
  const hasEnd = filter.toMs !== null || (order !== 'asc' && after !== null)
  return await readPage(db, sql`${hasStart && hasEnd ? sql`` : KEEP_PLAN}${page}`, query)
}

/** Reads the first events of each value from its index, and sorts these few. */
async function readListed(
  db: Queryable,
  query: ListQuery,
  [field, values]: ListedField,
): Promise<PartialPage> {
  const { filter, order, limit } = query
  const rows = sql.lit(roundedLimit(limit + 1))
  const page = sql`
    select found.*
      from unnest(${values}::${field === 'projectId' ? sql`uuid[]` : sql`text[]`}) as wanted (value)
     cross join lateral (
       select * from event
        where ${VALUE_COLUMNS[field]} = wanted.value
          and ${sql.join(rangeConditions({ ...query, filter: { ...filter, anyOf: null } }), sql` and `)}
        ${inOrder(order)}
        limit ${rows}) as found
     ${inOrder(order)}
     limit ${rows}`
  return await readPage(db, page, query)
}

function rangeConditions(query: ListQuery): RawBuilder<unknown>[] {
  return [
    sql`workspace_id = ${query.workspaceId}`,
    ...filterConditions(query.filter),
    ...afterConditions(query),
    hotIdCondition(query),
    ...hotTimeConditions(query),
  ]
}

function afterConditions({ after, order }: ListQuery): RawBuilder<unknown>[] {
  return after ? [afterCondition(after, order)] : []
}

/** The conditions in addition to the filter. */
function listConditions({ conditions = NO_CONDITIONS }: ListQuery): RawBuilder<unknown>[] {
  const { seqFrom, seqTo } = conditions
  return [
    ...listedFieldsOf(NO_FILTER, conditions).map((listed) => hasOneOf(...listed)),
    ...(seqFrom === null ? [] : [sql`seq >= ${seqFrom}`]),
    ...(seqTo === null ? [] : [sql`seq <= ${seqTo}`]),
  ]
}

/**
 * Reads the first `rowsMax` rows of one index and returns those that match. If fewer than `limit` match,
 * the next page starts after the last row that was read. All statements see the same snapshot.
 */
async function scanEvents(db: Queryable, query: ListQuery): Promise<PartialPage> {
  return await inSnapshot(db, async (trx) => {
    // A plan that sorts reads all rows of the range first. Every range has an index in the right order.
    await sql`select set_config('enable_sort', 'off', true)`.execute(trx)
    const field = await findRarestField(trx, query)
    const rows = rowsOf(query, field)
    const { limit, findEnd } = await findSpan(trx, rows, query)
    const others: EventFilter = {
      ...query.filter,
      fromMs: null,
      toMs: null,
      ...(field && { [field]: null }),
    }
    const matches = [
      ...filterConditions(others),
      ...listConditions(query),
      ...hotTimeConditions(query),
    ]
    // Don't sort again: otherwise the plan doesn't know that it needs only a few rows.
    const page = sql`
      select * from (select * ${rows} limit ${limit}) as scanned
       where ${sql.join(matches, sql` and `)}
       limit ${sql.lit(roundedLimit(query.limit + 1))}`
    const { events, next } = await readPage(trx, page, query)
    return { events, next: next ?? (await findEnd()) }
  })
}

/** How much metadata a scan compares. The worst takes about a second per MiB. */
const SCAN_METADATA_BYTES_MAX = 1_024 * 1_024

/** How many rows a scan reads, and how to find the position of the last one. Null if no rows follow. */
type Span = { limit: RawBuilder<unknown>; findEnd: () => Promise<PagePosition | null> }

async function findSpan(
  trx: Queryable,
  rows: RawBuilder<unknown>,
  { filter, rowsMax }: ListQuery,
): Promise<Span> {
  if (!comparesMetadata(filter)) {
    const findEnd = async () =>
      (await sql<PagePosition>`${positionAt(rows, rowsMax)}`.execute(trx)).rows[0] ?? null
    return { limit: sql.lit(rowsMax), findEnd }
  }
  // PostgreSQL knows the length of a value without reading it.
  const { rows: lasts } = await sql<PagePosition & { count: number; isCut: boolean }>`
    select count, "timestampMs", id, is_cut as "isCut"
      from (select row_number() over scanned as count, id,
                   (date_part('epoch', ts) * 1000)::bigint as "timestampMs",
                   lead(true) over scanned as is_cut,
                   sum(bytes) over scanned - bytes as bytes_before
              from (select ts, id, coalesce(octet_length(metadata), 0) as bytes
                      ${rows} limit ${sql.lit(rowsMax)}) as listed
            window scanned as (rows unbounded preceding)) as measured
     where bytes_before < ${SCAN_METADATA_BYTES_MAX}
     order by count desc
     limit 1`.execute(trx)
  const [last] = lasts
  const isCut = last?.isCut === true
  const hasMore = last !== undefined && (isCut || last.count === rowsMax)
  return {
    limit: isCut ? sql`${last.count}` : sql.lit(rowsMax),
    findEnd: async () => (hasMore ? { timestampMs: last.timestampMs, id: last.id } : null),
  }
}

/**
 * Reads a page in the order of receipt, if at most `rowsMax` events can match by an index: those in the time range
 * that have the rarest value of the filter. Null if there are more, or if they have to be compared by their
 * metadata, which a scan limits.
 */
export async function readFewReceived(
  db: Queryable,
  query: ListQuery,
): Promise<PartialPage | null> {
  const { filter, after, limit, bytesMax, rowsMax } = query
  if (comparesMetadata(filter)) return null
  return await inSnapshot(db, async (trx) => {
    await sql`select set_config('enable_sort', 'off', true)`.execute(trx)
    const inTime = { ...query, after: null }
    const rows = rowsOf(inTime, await findRarestField(trx, inTime))
    const { rows: found } = await sql<{ count: number }>`
      select count(*) as count from (select 1 ${rows} limit ${sql.lit(rowsMax + 1)}) as listed`.execute(
      trx,
    )
    if ((found[0]?.count ?? 0) > rowsMax) return null
    const matches = [
      ...filterConditions(filter),
      ...listConditions(query),
      ...(after === null ? [] : [sql`id < ${after.id}::uuid`]),
    ]
    const page = sql`
      select * from (select * ${rows} limit ${sql.lit(rowsMax)}) as listed
       where ${sql.join([sql`true`, ...matches], sql` and `)}
       ${inOrder('received')}
       limit ${limit + 1}`
    return await readPage(trx, page, { limit, bytesMax, order: 'received' })
  })
}

async function inSnapshot<T>(db: Queryable, read: (trx: Queryable) => Promise<T>): Promise<T> {
  if (db.isTransaction) return await read(db)
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return await snapshot.execute(read)
}

/** Reading this many index rows takes a fraction of a millisecond. */
const SAMPLED_ROWS = 500

/**
 * Finds the field whose value is rarest from here on: the one whose sample of rows reaches furthest.
 * Statistics would need no reads, but they don't know the workspace or recent changes.
 */
async function findRarestField(trx: Queryable, query: ListQuery): Promise<IndexedField | null> {
  const fields = indexedFieldsOf(query.filter)
  const [first = null] = fields
  if (fields.length <= 1) return first
  const samples = fields.map(
    (field) =>
      sql`(${positionAt(rowsOf(query, field), SAMPLED_ROWS, sql`${sql.lit(field)} as field,`)})`,
  )
  const { rows } = await sql<PagePosition & { field: IndexedField }>`
    ${sql.join(samples, sql` union all `)}`.execute(trx)
  const exhausted = fields.find((field) => rows.every((row) => row.field !== field))
  const [furthest] = rows.toSorted((a, b) => (comesBefore(a, b, query.order ?? 'desc') ? 1 : -1))
  return exhausted ?? furthest?.field ?? first
}

/** The end of a statement that reads all rows, or those with the value of one field, in order. */
function rowsOf(query: ListQuery, field: IndexedField | null): RawBuilder<unknown> {
  const { workspaceId, filter, order } = query
  const endMs = latestTimestampMs(filter)
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    ...(field ? filterConditions({ ...NO_FILTER, [field]: filter[field] }) : []),
    ...(filter.fromMs === null ? [] : [sql`ts >= ${hiddenTime(filter.fromMs)}`]),
    ...(endMs === null ? [] : [sql`ts < ${hiddenTime(endMs)}`]),
    ...afterConditions(query),
    // Rows that were received earlier count toward the limit of a scan. Skipping them would read the whole index.
    hotIdCondition({ ...query, filter: { ...filter, receivedFromMs: null } }),
  ]
  return sql`from event where ${sql.join(conditions, sql` and `)} ${inOrder(order)}`
}

/** Exclusive. No timestamp is further ahead of its receipt than this. */
function latestTimestampMs({ toMs, receivedToMs }: EventFilter): number | null {
  if (receivedToMs === null) return toMs
  const latestMs = receivedToMs + TIMESTAMP_AHEAD_MS_MAX
  return toMs === null ? latestMs : Math.min(toMs, latestMs)
}

/**
 * Hides a time from the planner. If PostgreSQL saw a time later than its statistics, it would expect a
 * single row, and the index of all events would look as good as that of the field.
 */
function hiddenTime(ms: number): RawBuilder<unknown> {
  return sql`(select ${new Date(ms)}::timestamptz)`
}

/** Selects the position of the nth row, starting at 1; no row if there are fewer. */
function positionAt(
  rows: RawBuilder<unknown>,
  number: number,
  columns: RawBuilder<unknown> = sql``,
): RawBuilder<unknown> {
  return sql`
    select ${columns} (date_part('epoch', ts) * 1000)::bigint as "timestampMs", id
      ${rows} offset ${sql.lit(number - 1)} limit 1`
}

/** The id is in the index, so this condition reads no table rows, and it prunes partitions. */
function hotIdCondition({ filter, hotSinceMs, hotFromId }: ListQuery): RawBuilder<unknown> {
  if (hotFromId !== undefined) return hotFromCondition(filter, hotFromId)
  return sql`id >= ${idFloor(earliestReceiptMs(filter, hotSinceMs))}::uuid`
}

function hotTimeConditions({ hotSinceMs, hotFromId }: ListQuery): RawBuilder<unknown>[] {
  return hotFromId === undefined ? [sql`received_at >= ${new Date(hotSinceMs)}`] : []
}

const ROUNDED_LIMITS = [51, 201] as const

/**
 * A plan accounts for a small limit only if the limit is part of the statement's text, and each text needs
 * a plan of its own. So a page uses one of two limits: the default or the maximum.
 */
function roundedLimit(limit: number): number {
  return ROUNDED_LIMITS.find((rounded) => rounded >= limit) ?? limit
}
