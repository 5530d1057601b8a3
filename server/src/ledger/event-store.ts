import { type RawBuilder, sql } from 'kysely'
import { assertId, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import {
  type ChainHead,
  type EventFacets,
  type SealedEvent,
  TIMESTAMP_AHEAD_MS_MAX,
} from './event.ts'
import {
  lastPosition,
  type ListOrder,
  type PageOrder,
  type PagePosition,
  type PartialPage,
} from './event-page.ts'
import { type EventFilter, SEARCHED_FIELDS, type SearchedField } from './filter/event-filter.ts'
import {
  type ExcludedField,
  type Exclusion,
  type FieldValue,
  valuesByField,
} from './filter/exclusion.ts'
import { foldCase } from '../platform/fold-case.ts'
import { anyValueCondition, roleCondition, termsCondition } from './search/condition-store.ts'

/** A row as `EVENT_COLUMNS` selects it. */
export type EventRow = {
  id: string
  seq: number
  timestampMs: number
  receivedAtMs: number
  companyId: string
  workspaceId: string
  projectId: string | null
  category: string
  action: string
  actor: string | null
  resource: string | null
  metadata: string | null
  traceId: string | null
  hash: string
  prevHash: string
  sealed: string
  salts: string
}

/**
 * The columns of a `select … from event`; `toEvent` converts the row. Uses `date_part`, whose double
 * represents every millisecond exactly: `extract` calculates in decimals, which takes several times longer.
 */
export const EVENT_COLUMNS = sql`
  id, seq,
  (date_part('epoch', ts) * 1000)::bigint as "timestampMs",
  (date_part('epoch', received_at) * 1000)::bigint as "receivedAtMs",
  company_id as "companyId", workspace_id as "workspaceId", project_id as "projectId",
  category, action, actor, resource, metadata,
  replace(trace_id::text, '-', '') as "traceId",
  encode(hash, 'hex') as hash, encode(prev_hash, 'hex') as "prevHash", sealed, salts`

/**
 * Reads the rows of `page` in order, up to `limit` events or until their parts reach `bytesMax`, and at
 * least one. PostgreSQL reads the lengths without the values, so a row that is left out costs almost nothing.
 */
export async function readPage(
  db: Queryable,
  page: RawBuilder<unknown>,
  { limit, bytesMax, order }: { limit: number; bytesMax: number; order?: ListOrder },
): Promise<PartialPage> {
  const { rows } = await sql<EventRow & { hasNext: boolean }>`
    select ${EVENT_COLUMNS}, has_next as "hasNext"
      from (select page.*,
                   row_number() over listed as place,
                   sum(${PART_BYTES}) over (listed rows unbounded preceding) - (${PART_BYTES}) as bytes_before,
                   lead(true) over listed is not null as has_next
              from (${page}) as page
            window listed as (${inOrder(order)})) as measured
     where place <= ${limit} and bytes_before < ${bytesMax}
     ${inOrder(order)}`.execute(db)
  const events = rows.map(toEvent)
  return { events, next: rows.at(-1)?.hasNext === true ? lastPosition(events) : null }
}

/**
 * The order of a list, newest first by default. Every index of a field ends in `ts` and `id`. Only a short list
 * can be sorted by receipt.
 */
export function inOrder(order: ListOrder = 'desc'): RawBuilder<unknown> {
  if (order === 'received') return sql`order by id desc`
  return order === 'asc' ? sql`order by ts, id` : sql`order by ts desc, id desc`
}

/** The size of an event's parts. PostgreSQL reads the lengths without the values. */
export const PART_BYTES = sql`
  coalesce(octet_length(actor), 0) + coalesce(octet_length(resource), 0)
    + coalesce(octet_length(metadata), 0)`

/** Ids ascend along a chain and are in the index, so this condition reads no table rows. */
export function hotFromCondition(filter: EventFilter, hotFromId: string): RawBuilder<unknown> {
  const earliest = idFloor(earliestReceiptMs(filter, 0))
  return sql`id >= ${earliest > hotFromId ? earliest : hotFromId}::uuid`
}

/** A stored event, its facet columns, and whether its stored times are whole milliseconds. */
export type ChainEntry = { event: SealedEvent; facets: EventFacets; hasWholeMs: boolean }

/** `hasMore` is false only if the run ends with the last event of the chain that is in the table. */
type ListedRun = { entries: ChainEntry[]; hasMore: boolean }

/** Including the event that exceeds it, a run takes a few megabytes at most. */
const RUN_BYTES_MAX = 2 * 1_024 * 1_024

/** Events of a chain in order: up to `limit`, or until their parts reach `bytesMax`, and at least one. */
export type RunQuery = {
  workspaceId: WorkspaceId
  afterSeq: number
  /** An event that the caller has already read. The run omits it. */
  seen?: { seq: number; id: string } | null
  limit: number
  bytesMax?: number
}

export async function listChainRun(db: Queryable, run: RunQuery): Promise<ListedRun> {
  const { limit, bytesMax = RUN_BYTES_MAX } = run
  const columns = sql`
    ${EVENT_COLUMNS},
    actor_id as "actorId", actor_email as "actorEmail",
    resource_type as "resourceType", resource_id as "resourceId",
    ts = date_trunc('milliseconds', ts)
      and received_at = date_trunc('milliseconds', received_at) as "hasWholeMs",
    case when bytes >= ${bytesMax} then true end as "isFull"`
  const { rows } = await selectRun<
    EventRow & EventFacets & { hasWholeMs: boolean; isFull: true | null }
  >(columns, run).execute(db)
  const hasMore = rows.length === limit || rows.at(-1)?.isFull === true
  const entries = rows.map((row) => {
    const { actorId, actorEmail, resourceType, resourceId, hasWholeMs } = row
    const facets = { actorId, actorEmail, resourceType, resourceId }
    return { event: toEvent(row), facets, hasWholeMs }
  })
  return { entries, hasMore }
}

/** Rows of a usual size. The sum that limits the bytes of a run costs PostgreSQL as much as reading its rows. */
export function selectShortRows(
  columns: RawBuilder<unknown>,
  { workspaceId, afterSeq, seen = null, limit }: RunQuery,
): RawBuilder<unknown> {
  return sql`
    select ${columns}
      from event
     where workspace_id = ${workspaceId} and seq > ${afterSeq} ${unseenCondition(seen)}
     order by seq
     limit ${limit}`
}

function unseenCondition(seen: RunQuery['seen']): RawBuilder<unknown> {
  return seen ? sql`and (seq, id) <> (${seen.seq}, ${seen.id}::uuid)` : sql``
}

/** PostgreSQL reads the lengths without the values, as in `readPage`. */
export function selectRun<Row>(
  columns: RawBuilder<unknown>,
  { workspaceId, afterSeq, seen = null, limit, bytesMax = RUN_BYTES_MAX }: RunQuery,
): RawBuilder<Row> {
  return sql<Row>`
    select ${columns}
      from (select run.*, sum(${PART_BYTES}) over (order by seq rows unbounded preceding) as bytes
              from (select * from event
                     where workspace_id = ${workspaceId} and seq > ${afterSeq} ${unseenCondition(seen)}
                     order by seq
                     limit ${limit}) as run) as measured
     where bytes - (${PART_BYTES}) < ${bytesMax}
     order by seq`
}

/** The fields that link an event to its neighbors in the chain. */
export type ChainLink = Pick<SealedEvent, 'id' | 'seq' | 'hash' | 'prevHash'>

export async function listChainLinks(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
): Promise<ChainLink[]> {
  const { rows } = await sql<Pick<EventRow, 'id' | 'seq' | 'hash' | 'prevHash'>>`
    select id, seq, encode(hash, 'hex') as hash, encode(prev_hash, 'hex') as "prevHash"
      from event
     where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}
     order by seq`.execute(db)
  return rows.map((row) => ({ ...row, id: assertId(row.id) }))
}

/** The row comparison follows the index; the additional `ts <=` prunes partitions. */
export function afterCondition(
  { timestampMs, id }: PagePosition,
  order: PageOrder = 'desc',
): RawBuilder<unknown> {
  const at = new Date(timestampMs)
  if (order === 'asc') return sql`ts >= ${at} and (ts, id) > (${at}, ${id}::uuid)`
  return sql`ts <= ${at} and (ts, id) < (${at}, ${id}::uuid)`
}

/** The conditions of a filter. The caller adds the workspace. */
export function filterConditions(filter: EventFilter): RawBuilder<unknown>[] {
  const conditions: RawBuilder<unknown>[] = []
  if (filter.fromMs !== null) conditions.push(sql`ts >= ${new Date(filter.fromMs)}`)
  if (filter.toMs !== null) conditions.push(sql`ts < ${new Date(filter.toMs)}`)
  const { receivedFromMs, receivedToMs } = filter
  if (receivedFromMs !== null) conditions.push(sql`received_at >= ${new Date(receivedFromMs)}`)
  if (receivedToMs !== null) conditions.push(sql`received_at < ${new Date(receivedToMs)}`)
  if (filter.category !== null) conditions.push(sql`category = ${filter.category}`)
  if (filter.action !== null) conditions.push(sql`action = ${filter.action}`)
  if (filter.projectId !== null) conditions.push(sql`project_id = ${filter.projectId}`)
  if (filter.actorId !== null) conditions.push(sql`actor_id = ${filter.actorId}`)
  if (filter.actorEmail !== null) conditions.push(sql`actor_email = ${filter.actorEmail}`)
  if (filter.resourceType !== null) conditions.push(sql`resource_type = ${filter.resourceType}`)
  if (filter.resourceId !== null) conditions.push(sql`resource_id = ${filter.resourceId}`)
  if (filter.traceId !== null) conditions.push(sql`trace_id = ${filter.traceId}::uuid`)
  if (filter.actorRole !== null) conditions.push(roleCondition(filter.actorRole))
  if (filter.metadata !== null) conditions.push(termsCondition(filter.metadata))
  if (filter.text !== null) conditions.push(textCondition(filter.text, filter.textIn))
  conditions.push(...[...valuesByField(filter.anyOf ?? [])].map((entry) => hasOneOf(...entry)))
  if (filter.excluded !== null) conditions.push(...excludedConditions(filter.excluded))
  return conditions
}

/**
 * `is not true` also includes rows where the value is null. The values of a field are one parameter, so
 * that the number of values doesn't change the statement's text.
 */
function excludedConditions(excluded: readonly Exclusion[]): RawBuilder<unknown>[] {
  return [...valuesByField(excluded)].map(
    ([field, values]) => sql`(${hasOneOf(field, values)}) is not true`,
  )
}

/** Whether a row has one of these values in the field. */
export function hasOneOf(field: ExcludedField, values: readonly string[]): RawBuilder<unknown> {
  const type = field === 'projectId' ? sql`uuid[]` : sql`text[]`
  return sql`${VALUE_COLUMNS[field]} = any (${values}::${type})`
}

/** Whether a row has one of these values in its field. Always false without values. */
export function hasSomeOf(values: readonly FieldValue[]): RawBuilder<unknown> {
  const conditions = [...valuesByField(values)].map((entry) => hasOneOf(...entry))
  return conditions.length === 0 ? sql`false` : sql`(${sql.join(conditions, sql` or `)})`
}

function textCondition(text: string, textIn: EventFilter['textIn']): RawBuilder<unknown> {
  const inFields = fieldsCondition(text)
  if (textIn === 'fields') return inFields
  const inMetadata = anyValueCondition(text)
  return textIn === 'all'
    ? sql`(${inFields} or ${inMetadata})`
    : sql`(${inMetadata} and ${inFields} is not true)`
}

/** The columns are `collate "C"`, so `lower` folds only A to Z, as `foldCase` does. */
function fieldsCondition(text: string): RawBuilder<unknown> {
  const folded = foldCase(text)
  const conditions = SEARCHED_FIELDS.map(
    (name) => sql`position(${folded} in lower(${SEARCHED_COLUMNS[name]})) > 0`,
  )
  return sql`(${sql.join(conditions, sql` or `)})`
}

/** The column that has a copy of each field. */
export const SEARCHED_COLUMNS: Record<SearchedField, RawBuilder<unknown>> = {
  category: sql`category`,
  action: sql`action`,
  actorId: sql`actor_id`,
  actorEmail: sql`actor_email`,
  resourceType: sql`resource_type`,
  resourceId: sql`resource_id`,
}

export const VALUE_COLUMNS: Record<ExcludedField, RawBuilder<unknown>> = {
  ...SEARCHED_COLUMNS,
  projectId: sql`project_id`,
}

/**
 * The earliest receipt of a match, and so the earliest time in its id, which is never before the receipt.
 * It determines which partitions can have matches.
 */
export function earliestReceiptMs(
  { fromMs, receivedFromMs }: EventFilter,
  hotSinceMs: number,
): number {
  const earliestMs = fromMs === null ? 0 : fromMs - TIMESTAMP_AHEAD_MS_MAX
  return Math.max(hotSinceMs, earliestMs, receivedFromMs ?? 0)
}

type PlacedEvent = { seq: number; id: string; companyId: string }

/** The event of the table with the lowest number. An inserted event can have any number. */
export async function readLowestSeq(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<PlacedEvent | null> {
  return await readFirst(db, workspaceId, sql`asc`)
}

export async function readHighestSeq(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<PlacedEvent | null> {
  return await readFirst(db, workspaceId, sql`desc`)
}

async function readFirst(
  db: Queryable,
  workspaceId: WorkspaceId,
  order: RawBuilder<unknown>,
): Promise<PlacedEvent | null> {
  const { rows } = await sql<{ seq: string; id: string; companyId: string }>`
    select seq::text, id, company_id as "companyId" from event
     where workspace_id = ${workspaceId}
     order by event.seq ${order}
     limit 1`.execute(db)
  const [row] = rows
  return row ? { ...row, seq: Number(row.seq) } : null
}

/** The lowest UUIDv7 of an instant. */
export function idFloor(ms: number): string {
  const digits = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`
}

/** Names each field, because a copy with `...` takes ten times as long. Other columns are left out. */
export function toEvent(row: EventRow): SealedEvent {
  return {
    id: assertId(row.id),
    seq: row.seq,
    timestampMs: row.timestampMs,
    receivedAtMs: row.receivedAtMs,
    companyId: assertId(row.companyId),
    workspaceId: assertId(row.workspaceId),
    projectId: row.projectId === null ? null : assertId(row.projectId),
    category: row.category,
    action: row.action,
    actor: row.actor,
    resource: row.resource,
    metadata: row.metadata,
    traceId: row.traceId,
    hash: row.hash,
    prevHash: row.prevHash,
    sealed: row.sealed,
    salts: row.salts,
  }
}

export async function readHead(db: Queryable, workspaceId: WorkspaceId): Promise<ChainHead | null> {
  const row = await db
    .selectFrom('chain_head')
    .select(['seq', 'hash', 'last_id'])
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  if (!row) return null
  return {
    seq: row.seq,
    hash: row.hash,
    lastId: row.last_id === null ? null : assertId(row.last_id),
  }
}
