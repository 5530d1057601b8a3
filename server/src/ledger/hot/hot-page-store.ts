import { type RawBuilder, sql } from 'kysely'
import { type Copied, copyOut, CopyTooLargeError } from '../../platform/pg/copy-out.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { comparesMetadata, type EventFilter } from '../filter/event-filter.ts'
import { filterConditions, PART_BYTES } from '../event-store.ts'
import type { ChainSource } from '../replica/chain-reads.ts'
import { findComparableEnd } from '../search/comparable-run-store.ts'
import { HotPage } from './hot-page.ts'

/** The maximum number of events that a statement examines, however few of them match. */
const SEQS_PER_PAGE_MAX = 50_000
const PAGE_BYTES_MAX = 8 * 1_024 * 1_024
/** More than a page and its last row. A page that turns out larger is read again as a smaller page. */
const COPY_BYTES_MAX = PAGE_BYTES_MAX + 512 * 1_024

/** The typical size of an event. The buffer grows for larger ones. */
export const ROW_BYTES = 1_024
/** A buffer that exceeds the required size by more than this factor isn't reused. */
const BUFFER_RATIO_MAX = 4

/**
 * In the order that `HotRow` expects, fixed-size columns first. Derived values are
 * computed here, not in the database.
 */
export const HOT_COLUMNS = sql`
  id, seq, ts, received_at, company_id, hash, prev_hash,
  project_id, trace_id, category, action, actor, resource, metadata, sealed, salts`

/**
 * The same columns of a stub, which has neither parts nor salts. PostgreSQL then doesn't read large values
 * that are stored outside of the row.
 */
const COLUMNS_OR_STUB = sql`
  id, seq, ts, received_at, company_id, hash, prev_hash,
  project_id, trace_id, category, action,
  case when is_match then actor end as actor,
  case when is_match then resource end as resource,
  case when is_match then metadata end as metadata,
  sealed,
  case when is_match then salts end as salts`

/** At least the size of a row, with a fixed amount for its columns of a fixed size. */
const ROW_BYTES_MAX = sql`
  512 + octet_length(category) + octet_length(action) + ${PART_BYTES}
    + octet_length(sealed) + coalesce(octet_length(salts), 0)`

/**
 * Reads the matching events of a run, up to `limit` or fewer. The next page starts after `scannedSeq`. With
 * `includeStubs`, it reads all events, and those that don't match as stubs: without their parts and salts.
 */
export async function readHotPage(
  { pool, db }: ChainSource,
  {
    workspaceId,
    fromSeq,
    toSeq,
    filter,
    includeStubs = false,
    limit,
    bytesMax = PAGE_BYTES_MAX,
    mayBeLarge = false,
    reuse = null,
  }: {
    workspaceId: WorkspaceId
    fromSeq: number
    toSeq: number
    filter: EventFilter
    includeStubs?: boolean
    limit: number
    /** Rows beyond this size are left for the next page; the first row is always read. */
    bytesMax?: number
    /** Whether to add up the sizes of the rows in the database. Without it, pages of small rows are faster. */
    mayBeLarge?: boolean | undefined
    /** A page that is no longer needed. The new page may reuse its buffer. */
    reuse?: HotPage | null
  },
): Promise<HotPage> {
  const lastSeq = Math.min(toSeq, fromSeq + SEQS_PER_PAGE_MAX - 1)
  const endSeq = comparesMetadata(filter)
    ? await findComparableEnd(db, { workspaceId, fromSeq, toSeq: lastSeq, order: 'asc' })
    : lastSeq
  const run = { workspaceId, fromSeq, toSeq: endSeq, limit }
  const rows = includeStubs ? rowsAndStubs(run, filter) : matchingRows(run, filter)
  const keptBytesMax = Math.min(bytesMax, PAGE_BYTES_MAX)
  const query = (mayBeLarge ? limitBytes(keptBytesMax, rows) : rows).compile(db)
  const room = bufferFor(Math.min(limit * ROW_BYTES, keptBytesMax), reuse?.bytes)
  let copied: Copied
  try {
    copied = await copyOut(pool, query, { room, keptBytesMax, bytesMax: COPY_BYTES_MAX })
  } catch (error) {
    if (!(error instanceof CopyTooLargeError) || mayBeLarge) throw error
    const again = { workspaceId, fromSeq, toSeq, filter, includeStubs, limit, bytesMax }
    return await readHotPage({ pool, db }, { ...again, mayBeLarge: true })
  }
  const { bytes, isCut } = copied
  // A page that may be shorter because of its size counts as full, however few rows it has.
  return new HotPage(bytes, { workspaceId, toSeq: endSeq, limit: isCut || mayBeLarge ? 1 : limit })
}

type PageRun = { workspaceId: WorkspaceId; fromSeq: number; toSeq: number; limit: number }

function matchingRows(
  { workspaceId, fromSeq, toSeq, limit }: PageRun,
  filter: EventFilter,
): RawBuilder<unknown> {
  const conditions: RawBuilder<unknown>[] = [
    sql`workspace_id = ${workspaceId}`,
    sql`seq >= ${fromSeq}`,
    sql`seq <= ${toSeq}`,
    ...filterConditions(filter),
  ]
  return sql`
    select ${HOT_COLUMNS}
      from event
     where ${sql.join(conditions, sql` and `)}
     order by seq
     limit ${limit}`
}

/** The inner query has a limit, so PostgreSQL compares each row only once. */
function rowsAndStubs(
  { workspaceId, fromSeq, toSeq, limit }: PageRun,
  filter: EventFilter,
): RawBuilder<unknown> {
  const isMatch = sql.join([sql`true`, ...filterConditions(filter)], sql` and `)
  return sql`
    select ${COLUMNS_OR_STUB}
      from (select *, ${isMatch} as is_match
              from event
             where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}
             order by seq
             limit ${limit}) as run
     order by seq`
}

/** The first of these rows, up to this size. PostgreSQL knows the length of a value without reading it. */
function limitBytes(bytes: number, rows: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select ${HOT_COLUMNS}
      from (select *, sum(${ROW_BYTES_MAX}) over (order by seq rows unbounded preceding)
                        - (${ROW_BYTES_MAX}) as bytes_before
              from (${rows}) as page) as measured
     where bytes_before < ${bytes}
     order by seq`
}

/**
 * Reuses a buffer if possible: a new one per page would trigger the garbage
 * collector several times per second.
 */
export function bufferFor(bytes: number, reuse?: Buffer): Buffer {
  const old = reuse?.buffer
  const isFit = old && old.byteLength >= bytes && old.byteLength <= bytes * BUFFER_RATIO_MAX
  return isFit ? Buffer.from(old) : Buffer.allocUnsafeSlow(bytes)
}

/** Counts the events of a run that are in the table. */
export async function countRun(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count
      from event
     where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}`.execute(db)
  return rows[0]?.count ?? 0
}
