import { type RawBuilder, sql } from 'kysely'
import { type Copied, copyOut, CopyTooLargeError } from '../../platform/pg/copy-out.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import type { EventFilter } from '../event-filter.ts'
import { filterConditions } from '../event-store.ts'
import { HotPage } from './hot-page.ts'

/** The maximum number of events that a statement examines, however few of them match. */
const SEQS_PER_PAGE_MAX = 50_000
/** A page that turns out larger is read again as a smaller page. */
const PAGE_BYTES_MAX = 8 * 1_024 * 1_024

/** The typical size of an event. The buffer grows for larger ones. */
const ROW_BYTES = 1_024
/** A buffer that exceeds the required size by more than this factor isn't reused. */
const BUFFER_RATIO_MAX = 4

/**
 * In the order that `HotPage` expects, fixed-size columns first. Derived values are
 * computed here, not in the database.
 */
const COLUMNS = sql`
  id, seq, ts, received_at, company_id, hash, prev_hash,
  project_id, trace_id, category, action, actor, resource, metadata, sealed, salts`

/** Reads the matching events of a run, up to `limit` or fewer. The next page starts after `scannedSeq`. */
export async function readHotPage(
  { pool, db }: Pick<Database, 'pool' | 'db'>,
  {
    workspaceId,
    fromSeq,
    toSeq,
    filter,
    limit,
    bytesMax = PAGE_BYTES_MAX,
    reuse = null,
  }: {
    workspaceId: WorkspaceId
    fromSeq: number
    toSeq: number
    filter: EventFilter
    limit: number
    /** Rows beyond this size are left for the next page; the first row is always read. */
    bytesMax?: number
    /** A page that is no longer needed. The new page may reuse its buffer. */
    reuse?: HotPage | null
  },
): Promise<HotPage> {
  const endSeq = Math.min(toSeq, fromSeq + SEQS_PER_PAGE_MAX - 1)
  const conditions: RawBuilder<unknown>[] = [
    sql`workspace_id = ${workspaceId}`,
    sql`seq >= ${fromSeq}`,
    sql`seq <= ${endSeq}`,
    ...filterConditions(filter),
  ]
  const query = sql`
    select ${COLUMNS}
      from event
     where ${sql.join(conditions, sql` and `)}
     order by seq
     limit ${limit}`.compile(db)
  const keptBytesMax = Math.min(bytesMax, PAGE_BYTES_MAX)
  const room = bufferFor(Math.min(limit * ROW_BYTES, keptBytesMax), reuse)
  let copied: Copied
  try {
    copied = await copyOut(pool, query, { room, keptBytesMax, bytesMax: PAGE_BYTES_MAX })
  } catch (error) {
    if (!(error instanceof CopyTooLargeError) || limit === 1) throw error
    const smaller = { workspaceId, fromSeq, toSeq, filter, limit: Math.ceil(limit / 8), bytesMax }
    return await readHotPage({ pool, db }, smaller)
  }
  const { bytes, isCut } = copied
  // A page that was cut off is full, however few rows it has.
  return new HotPage(bytes, { workspaceId, toSeq: endSeq, limit: isCut ? 1 : limit })
}

/**
 * Reuses a buffer if possible: a new one per page would trigger the garbage
 * collector several times per second.
 */
function bufferFor(bytes: number, reuse: HotPage | null): Buffer {
  const old = reuse?.bytes.buffer
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
