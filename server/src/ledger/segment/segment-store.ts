import { sql } from 'kysely'
import { assertId, idTimeMs, type WorkspaceId } from '../../platform/id.ts'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../platform/pg/database.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { EventId } from '../event.ts'
import type { EventFilter } from '../filter/event-filter.ts'

/** A run of a chain in the archive, as the catalog describes it. */
export type Segment = {
  workspaceId: WorkspaceId
  firstSeq: number
  lastSeq: number
  objectKey: string
  bytes: number
  sha256: string
  /** The SHA-256 of the footer only. */
  footerSha256: string
  firstPrevHash: string
  lastHash: string
  lastId: EventId
  minTimestampMs: number
  maxTimestampMs: number
  minReceivedAtMs: number
  maxReceivedAtMs: number
}

type SegmentRow = Omit<Segment, 'workspaceId' | 'lastId'> & { workspaceId: string; lastId: string }

const COLUMNS = sql`
  workspace_id as "workspaceId", first_seq as "firstSeq", last_seq as "lastSeq",
  object_key as "objectKey", bytes, encode(sha256, 'hex') as sha256,
  encode(footer_sha256, 'hex') as "footerSha256",
  encode(first_prev_hash, 'hex') as "firstPrevHash", encode(last_hash, 'hex') as "lastHash",
  last_id as "lastId",
  (extract(epoch from min_ts) * 1000)::bigint as "minTimestampMs",
  (extract(epoch from max_ts) * 1000)::bigint as "maxTimestampMs",
  (extract(epoch from min_received_at) * 1000)::bigint as "minReceivedAtMs",
  (extract(epoch from max_received_at) * 1000)::bigint as "maxReceivedAtMs"`

/** Lists the segments that contain events of the range, in chain order. */
export async function listSegments(
  db: Queryable,
  {
    workspaceId,
    fromSeq,
    toSeq,
    limit,
  }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number; limit: number },
): Promise<Segment[]> {
  const { rows } = await sql<SegmentRow>`
    select ${COLUMNS}
      from segment
     where workspace_id = ${workspaceId} and last_seq >= ${fromSeq} and first_seq <= ${toSeq}
     order by last_seq
     limit ${limit}`.execute(db)
  return rows.map(toSegment)
}

/**
 * The name of a file at a position that no event can have. Only someone who changed the table can list one, and
 * then lookups by id find it.
 */
export async function findSegmentOutside(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<string | null> {
  const { rows } = await sql<{ objectKey: string }>`
    select object_key as "objectKey"
      from segment
     where workspace_id = ${workspaceId} and (first_seq < 1 or last_seq < first_seq)
     limit 1`.execute(db)
  return rows[0]?.objectKey ?? null
}

/** The first segment of a range with an event that was received at this time or later. */
export async function findSegmentReceived(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
  atMs: number,
): Promise<Segment | null> {
  const { rows } = await sql<SegmentRow>`
    select ${COLUMNS}
      from segment
     where workspace_id = ${workspaceId} and last_seq >= ${fromSeq} and first_seq <= ${toSeq}
       and max_received_at >= ${new Date(atMs)}
     order by last_seq
     limit 1`.execute(db)
  const [row] = rows
  return row ? toSegment(row) : null
}

/** The last segment of a range with an event that was received before this time. */
export async function findSegmentBefore(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
  atMs: number,
): Promise<Segment | null> {
  const { rows } = await sql<SegmentRow>`
    select ${COLUMNS}
      from segment
     where workspace_id = ${workspaceId} and last_seq >= ${fromSeq} and first_seq <= ${toSeq}
       and min_received_at < ${new Date(atMs)}
     order by last_seq desc
     limit 1`.execute(db)
  const [row] = rows
  return row ? toSegment(row) : null
}

function toSegment(row: SegmentRow): Segment {
  return { ...row, workspaceId: assertId(row.workspaceId), lastId: assertId(row.lastId) }
}

/**
 * Lists the segments that can contain the event with this id, at most one per workspace: the first one that
 * ends with it or a later id, because ids ascend along a chain. A segment whose events were all received
 * later can't, because the time in an id is never earlier than the receipt of its event.
 */
export async function listSegmentsOfId(
  db: Queryable,
  { workspaceIds, id }: { workspaceIds: readonly WorkspaceId[]; id: EventId },
): Promise<Segment[]> {
  const { rows } = await sql<SegmentRow>`
    ${KEEP_PLAN}
    select found.*
      from unnest(${workspaceIds}::uuid[]) as w (id)
     cross join lateral (
       select ${COLUMNS}
         from segment
        where workspace_id = w.id and last_id >= ${id}::uuid
        order by last_id
        limit 1) as found`.execute(db)
  return rows.map(toSegment).filter(({ minReceivedAtMs }) => minReceivedAtMs <= idTimeMs(id))
}

/** Segments of several chains are searched in this order, the last received first. */
export type SegmentPosition = { maxReceivedAtMs: number; workspaceId: WorkspaceId; lastSeq: number }

/** The time ranges of the wanted events. */
export type SegmentTimes = Pick<EventFilter, 'fromMs' | 'toMs' | 'receivedFromMs' | 'receivedToMs'>
type SearchedSegments = SegmentTimes & { workspaceIds: readonly WorkspaceId[] }

/** Lists the next segments to search, beginning with the one at the position. Null: the first ones. */
export async function listSegmentsBackward(
  db: Queryable,
  {
    workspaceIds,
    from,
    limit,
    ...range
  }: SearchedSegments & { from: SegmentPosition | null; limit: number },
): Promise<Segment[]> {
  const { rows } = await sql<SegmentRow>`
    select ${COLUMNS}
      from (select found.*
              from unnest(${workspaceIds}::uuid[]) as w (id)
             cross join lateral (
               select * from segment
                where workspace_id = w.id and ${isInRange(range)} and ${isAtOrAfter(from)}
                order by max_received_at desc, last_seq desc
                limit ${limit}) as found) as found
     order by max_received_at desc, workspace_id desc, last_seq desc
     limit ${limit}`.execute(db)
  return rows.map(toSegment)
}

type SegmentTotals = { segments: number; bytes: number }

/** Measures the segments with events in the range: all of them, and those that are left from a position on. */
export async function measureSegments(
  db: Queryable,
  { workspaceIds, from, ...range }: SearchedSegments & { from: SegmentPosition | null },
): Promise<{ all: SegmentTotals; left: SegmentTotals }> {
  const { rows } = await sql<{
    segments: number
    bytes: number
    segmentsLeft: number
    bytesLeft: number
  }>`
    select coalesce(sum(found.segments), 0)::bigint as segments,
           coalesce(sum(found.bytes), 0)::bigint as bytes,
           coalesce(sum(found.segments_left), 0)::bigint as "segmentsLeft",
           coalesce(sum(found.bytes_left), 0)::bigint as "bytesLeft"
      from unnest(${workspaceIds}::uuid[]) as w (id)
     cross join lateral (
       select count(*) as segments, sum(bytes) as bytes,
              count(*) filter (where ${isAtOrAfter(from)}) as segments_left,
              sum(bytes) filter (where ${isAtOrAfter(from)}) as bytes_left
         from segment
        where workspace_id = w.id and ${isInRange(range)}) as found`.execute(db)
  const { segments = 0, bytes = 0, segmentsLeft = 0, bytesLeft = 0 } = rows[0] ?? {}
  return { all: { segments, bytes }, left: { segments: segmentsLeft, bytes: bytesLeft } }
}

function isInRange({ fromMs, toMs, receivedFromMs, receivedToMs }: SegmentTimes) {
  const at = (ms: number | null) => sql`${ms === null ? null : new Date(ms)}::timestamptz`
  return sql`
    (${at(fromMs)} is null or max_ts >= ${at(fromMs)})
    and (${at(toMs)} is null or min_ts < ${at(toMs)})
    and (${at(receivedFromMs)} is null or max_received_at >= ${at(receivedFromMs)})
    and (${at(receivedToMs)} is null or min_received_at < ${at(receivedToMs)})`
}

function isAtOrAfter(from: SegmentPosition | null) {
  if (from === null) return sql`true`
  const { maxReceivedAtMs, workspaceId, lastSeq } = from
  return sql`
    (max_received_at, workspace_id, last_seq)
      <= (${new Date(maxReceivedAtMs)}::timestamptz, ${workspaceId}::uuid, ${lastSeq}::bigint)`
}

/** The seq of the last archived event, or 0. All events above it are hot. */
export async function readArchivedSeq(db: Queryable, workspaceId: WorkspaceId): Promise<number> {
  const row = await db
    .selectFrom('segment')
    .select((eb) => eb.fn.max('last_seq').as('seq'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row?.seq ?? 0
}

/** The latest timestamp of the archived events of these workspaces. Null if none is archived. */
export async function readArchivedUntil(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
): Promise<number | null> {
  const { rows } = await sql<{ timestampMs: number | null }>`
    select (extract(epoch from max(max_ts)) * 1000)::bigint as "timestampMs"
      from segment
     where workspace_id = any(${workspaceIds}::uuid[])`.execute(db)
  return rows[0]?.timestampMs ?? null
}

/**
 * The time since which all events of these workspaces that Annals received are hot: the start of the hot time, or
 * after the last archived event. Events can be archived within their hot time. The time in an id is never before
 * the receipt of the event or of those before it, so one row per workspace suffices.
 */
export async function readCompleteSinceMs(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
  hotSinceMs: number,
): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    ${KEEP_PLAN}
    select last.id
      from unnest((select ${workspaceIds}::uuid[])) as w (id)
     cross join lateral (
       select last_id as id from segment
        where workspace_id = w.id
        order by last_id desc
        limit 1) as last`.execute(db)
  return Math.max(hotSinceMs, ...rows.map(({ id }) => idTimeMs(id) + 1))
}

/**
 * Adds the file of a draft to the catalog and deletes the draft in the same statement. Returns false if the
 * segment doesn't follow the last one or the draft was condemned: another archiver is at work.
 */
export async function insertSegment(db: Queryable, segment: Segment, now: Date): Promise<boolean> {
  const at = (ms: number) => new Date(ms)
  try {
    const { rows } = await sql`
      with draft as (
        delete from segment_draft
         where workspace_id = ${segment.workspaceId} and object_key = ${segment.objectKey}
           and created_at > '-infinity'
           and coalesce((select max(last_seq) from segment
                          where workspace_id = ${segment.workspaceId}), 0)
               = ${segment.firstSeq}::bigint - 1
        returning object_key
      )
      insert into segment (workspace_id, first_seq, last_seq, object_key, bytes, sha256,
                           footer_sha256, first_prev_hash, last_hash, last_id, min_ts, max_ts,
                           min_received_at, max_received_at, created_at)
      select ${segment.workspaceId}::uuid, ${segment.firstSeq}::bigint, ${segment.lastSeq}::bigint,
             object_key, ${segment.bytes}::bigint, decode(${segment.sha256}, 'hex'),
             decode(${segment.footerSha256}, 'hex'),
             decode(${segment.firstPrevHash}, 'hex'), decode(${segment.lastHash}, 'hex'),
             ${segment.lastId}::uuid, ${at(segment.minTimestampMs)}::timestamptz,
             ${at(segment.maxTimestampMs)}::timestamptz, ${at(segment.minReceivedAtMs)}::timestamptz,
             ${at(segment.maxReceivedAtMs)}::timestamptz, ${now}::timestamptz
        from draft
      returning 1`.execute(db)
    return rows.length === 1
  } catch (error) {
    // Another archiver inserted its segment first. `on conflict` wouldn't do, because
    // the draft must stay in this case.
    if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    return false
  }
}
