import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { TokenizedEvent } from './search-tokens.ts'
import { BUCKET_BYTES } from './token-filter.ts'
import type { SearchToken } from './token-table.ts'

/** A run of a chain. Without an index, nothing is known about its events. */
export type SearchBlock = {
  firstSeq: number
  lastSeq: number
  minTimestampMs: number
  maxTimestampMs: number
  index: BlockIndex | null
}

export type BlockIndex = {
  sliceEvents: number
  /** In which slices a token may be. */
  tokens: Buffer
  /** What counting needs. Null: the events have to be read to count them. */
  counts: { seed: number; facts: Buffer; postings: Buffer } | null
}

export type BlockEvent = TokenizedEvent & {
  timestampMs: number
  category: string
  action: string
}

/** The blocks cover the events above `floorSeq`, up to and including `seenSeq`. */
type SearchWatermark = { floorSeq: number; seenSeq: number }

export async function findSearchWatermark(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<SearchWatermark | null> {
  const { rows } = await sql<SearchWatermark>`
    select floor_seq as "floorSeq", seen_seq as "seenSeq"
      from search_watermark where workspace_id = ${workspaceId}`.execute(db)
  return rows[0] ?? null
}

/** False if the watermark isn't at `fromSeq`, because another node was faster. */
export async function moveSearchWatermark(
  trx: Queryable,
  workspaceId: WorkspaceId,
  { fromSeq, toSeq }: { fromSeq: number; toSeq: number },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update search_watermark set seen_seq = ${toSeq}, advanced_at = now()
     where workspace_id = ${workspaceId} and seen_seq = ${fromSeq}`.execute(trx)
  return numAffectedRows === 1n
}

export async function insertSearchBlocks(
  trx: Queryable,
  workspaceId: WorkspaceId,
  blocks: readonly SearchBlock[],
): Promise<void> {
  const indexes = blocks.map(({ index }) => index)
  await sql`
    insert into search_block (workspace_id, first_seq, last_seq, min_ts, max_ts, slice_events,
                              slice_tokens, seed, facts, postings)
    select ${workspaceId}, first_seq, last_seq, min_ts, max_ts, slice_events, slice_tokens, seed,
           facts, postings
      from unnest(${blocks.map(({ firstSeq }) => firstSeq)}::bigint[],
                  ${blocks.map(({ lastSeq }) => lastSeq)}::bigint[],
                  ${blocks.map(({ minTimestampMs }) => new Date(minTimestampMs))}::timestamptz[],
                  ${blocks.map(({ maxTimestampMs }) => new Date(maxTimestampMs))}::timestamptz[],
                  ${indexes.map((index) => index?.sliceEvents ?? null)}::int[],
                  ${indexes.map((index) => index?.tokens ?? null)}::bytea[],
                  ${indexes.map((index) => index?.counts?.seed ?? null)}::bigint[],
                  ${indexes.map((index) => index?.counts?.facts ?? null)}::bytea[],
                  ${indexes.map((index) => index?.counts?.postings ?? null)}::bytea[])
             as b (first_seq, last_seq, min_ts, max_ts, slice_events, slice_tokens, seed, facts,
                   postings)`.execute(trx)
}

/** Canonical JSON escapes it, so it separates texts. A text that is null is empty here, which JSON never is. */
const SEPARATOR = '\u0001'

type RunQuery = { workspaceId: WorkspaceId; afterSeq: number; toSeq: number; limit: number }

/**
 * A run of a chain above `afterSeq`, up to `limit` events or until their metadata reaches `bytesMax`, and at
 * least one. `isCut` if the size ended the run. One row has all events, because decoding a row of six columns
 * takes as long as finding the tokens of an event. Times and trace ids are in binary, because PostgreSQL takes a
 * microsecond per event to write them as text.
 */
export async function listBlockRun(
  db: Queryable,
  { bytesMax, ...query }: RunQuery & { bytesMax: number },
): Promise<{ events: BlockEvent[]; lastSeq: number; isCut: boolean }> {
  const cutAt = await findCut(db, query, bytesMax)
  const { workspaceId, afterSeq, toSeq, limit } = query
  const { rows } = await sql<RunRow>`
    ${KEEP_PLAN}
    select max(seq) as "lastSeq",
           string_agg(timestamptz_send(ts), '' order by seq) as times,
           string_agg(coalesce(uuid_send(trace_id), ${NO_TRACE}), '' order by seq) as "traceIds",
           json_agg(category order by seq) as categories,
           json_agg(action order by seq) as actions,
           string_agg(coalesce(actor, ''), ${SEPARATOR} order by seq) as actors,
           string_agg(coalesce(metadata, ''), ${SEPARATOR} order by seq) as metadata
      from (select seq, ts, trace_id, category, action, actor, metadata from event
             where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
             order by seq
             limit ${cutAt ?? limit}) as run`.execute(db)
  const row = rows[0]
  if (!row || row.lastSeq === null) return { events: [], lastSeq: afterSeq, isCut: false }
  const { lastSeq, times, traceIds, categories, actions } = row
  const actors = row.actors.split(SEPARATOR)
  const metadata = row.metadata.split(SEPARATOR)
  const events = categories.map((category, nth) => ({
    timestampMs: readTimeMs(times, nth * TIME_BYTES),
    traceId: readTraceId(traceIds, nth * TRACE_BYTES),
    category,
    action: actions[nth] ?? '',
    actor: actors[nth] || null,
    metadata: metadata[nth] || null,
  }))
  return { events, lastSeq, isCut: cutAt !== null }
}

type RunRow = {
  lastSeq: number | null
  times: Buffer
  traceIds: Buffer
  categories: string[]
  actions: string[]
  actors: string
  metadata: string
}

const TRACE_BYTES = 16
/** No trace has this id. */
const NO_TRACE = Buffer.alloc(TRACE_BYTES)
const NO_TRACE_TEXT = NO_TRACE.toString('hex')

function readTraceId(traceIds: Buffer, start: number): string | null {
  const text = traceIds.toString('hex', start, start + TRACE_BYTES)
  return text === NO_TRACE_TEXT ? null : text
}

const TIME_BYTES = 8
const YEAR_2000_MS = Date.UTC(2000, 0)

/** PostgreSQL counts microseconds since 2000. A number is precise enough for the milliseconds of any year. */
function readTimeMs(times: Buffer, start: number): number {
  const microseconds = times.readInt32BE(start) * 2 ** 32 + times.readUInt32BE(start + 4)
  return YEAR_2000_MS + Math.round(microseconds / 1_000)
}

/** How many events of a run fit into `bytesMax`, or null if all do. PostgreSQL reads the lengths without the values. */
async function findCut(db: Queryable, query: RunQuery, bytesMax: number): Promise<number | null> {
  const { workspaceId, afterSeq, toSeq, limit } = query
  const run = sql`
    select seq, coalesce(octet_length(metadata), 0) as bytes from event
     where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
     order by seq
     limit ${limit}`
  const total = await sql<{ bytes: number }>`
    ${KEEP_PLAN}
    select coalesce(sum(bytes), 0)::bigint as bytes from (${run}) as run`.execute(db)
  if ((total.rows[0]?.bytes ?? 0) <= bytesMax) return null
  const fitting = await sql<{ count: number }>`
    ${KEEP_PLAN}
    select count(*) as count
      from (select sum(bytes) over (order by seq rows unbounded preceding) - bytes as bytes_before
              from (${run}) as run) as measured
     where bytes_before < ${bytesMax}`.execute(db)
  return fitting.rows[0]?.count ?? null
}

/**
 * Workspaces with at least `eventsMin` events that are not in blocks. Lists one workspace of each company, the
 * one that has waited longest, so that companies take turns.
 */
export async function listUncovered(
  db: Queryable,
  {
    eventsMin,
    except = [],
    limit,
  }: { eventsMin: number; except?: readonly WorkspaceId[]; limit: number },
): Promise<{ workspaceId: WorkspaceId; companyId: CompanyId }[]> {
  const { rows } = await sql<{ workspaceId: string; companyId: string }>`
    ${KEEP_PLAN}
    select id as "workspaceId", company_id as "companyId"
      from (select distinct on (w.company_id) w.id, w.company_id, s.advanced_at
              from chain_head h
              join workspace w on w.id = h.workspace_id
              left join search_watermark s on s.workspace_id = h.workspace_id
             where h.seq - coalesce(s.seen_seq, 0) >= ${eventsMin} and w.id <> all (${except}::uuid[])
             order by w.company_id, s.advanced_at nulls first) as behind
     order by advanced_at nulls first
     limit ${limit}`.execute(db)
  return rows.map(({ workspaceId, companyId }) => ({
    workspaceId: assertId(workspaceId),
    companyId: assertId(companyId),
  }))
}

/** A block with the buckets of some tokens, in their order. Null if nothing is known about its events. */
export type BlockBuckets = Omit<SearchBlock, 'index'> & {
  sliceEvents: number | null
  /** Whether matches can be counted without reading the events. */
  hasCounts: boolean
  buckets: readonly Buffer[] | null
}

/**
 * The blocks with events above `afterSeq` and with timestamps in a range, and the watermark, in one statement.
 * Events above `seenSeq` are in no block.
 */
export async function listBlockBuckets(
  db: Queryable,
  {
    workspaceId,
    afterSeq,
    toSeq = Number.MAX_SAFE_INTEGER,
    fromMs,
    toMs,
    tokens,
    limit,
  }: {
    workspaceId: WorkspaceId
    afterSeq: number
    toSeq?: number
    /** Inclusive. */
    fromMs: number | null
    /** Exclusive. */
    toMs: number | null
    tokens: readonly SearchToken[]
    limit: number
  },
): Promise<SearchWatermark & { blocks: BlockBuckets[]; headSeq: number }> {
  const bucket = (token: SearchToken) => sql`
    substring(b.slice_tokens
              from 1 + ((${token >>> 0}::bigint % (octet_length(b.slice_tokens) / ${sql.lit(BUCKET_BYTES)}))
                        * ${sql.lit(BUCKET_BYTES)})::int
              for ${sql.lit(BUCKET_BYTES)})`
  const { rows } = await sql<
    SearchWatermark & { headSeq: number; spans: string | null; buckets: Buffer | null }
  >`
    ${KEEP_PLAN}
    select w.floor_seq as "floorSeq", w.seen_seq as "seenSeq", w.head_seq as "headSeq",
           listed.spans, listed.buckets
      from (select coalesce((select floor_seq from search_watermark where workspace_id = ${workspaceId}),
                            ${afterSeq}::bigint) as floor_seq,
                   coalesce((select seen_seq from search_watermark where workspace_id = ${workspaceId}),
                            ${afterSeq}::bigint) as seen_seq,
                   coalesce((select seq from chain_head where workspace_id = ${workspaceId}), 0) as head_seq) as w
     cross join lateral (
       select string_agg(b.span, ',') as spans, string_agg(coalesce(b.buckets, ''), '') as buckets
         from (select concat_ws(' ', b.first_seq, b.last_seq,
                                (date_part('epoch', b.min_ts) * 1000)::bigint,
                                (date_part('epoch', b.max_ts) * 1000)::bigint,
                                coalesce(b.slice_events, 0), (b.facts is not null)::int) as span,
                      ${sql.join(tokens.map(bucket), sql` || `)} as buckets
                 from search_block b
                where b.workspace_id = ${workspaceId} and b.last_seq > ${afterSeq}
                  and b.first_seq <= ${toSeq}
                  and (${fromMs === null ? null : new Date(fromMs)}::timestamptz is null
                       or b.max_ts >= ${fromMs === null ? null : new Date(fromMs)})
                  and (${toMs === null ? null : new Date(toMs)}::timestamptz is null
                       or b.min_ts < ${toMs === null ? null : new Date(toMs)})
                limit ${limit}) as b) as listed`.execute(db)
  const { floorSeq = 0, seenSeq = 0, headSeq = 0, spans = null, buckets = null } = rows[0] ?? {}
  const blocks = spans === null || buckets === null ? [] : readBlocks(spans, buckets, tokens.length)
  return { blocks, floorSeq, seenSeq, headSeq }
}

/** One row has all blocks, because decoding a row takes longer than checking its buckets. */
function readBlocks(spans: string, buckets: Buffer, tokens: number): BlockBuckets[] {
  let start = 0
  return spans.split(',').map((span) => {
    const [
      firstSeq = 0,
      lastSeq = 0,
      minTimestampMs = 0,
      maxTimestampMs = 0,
      sliceEvents = 0,
      hasCounts,
    ] = span.split(' ').map(Number)
    const own = { firstSeq, lastSeq, minTimestampMs, maxTimestampMs, hasCounts: hasCounts === 1 }
    if (sliceEvents === 0) return { ...own, sliceEvents: null, buckets: null }
    const found = Array.from({ length: tokens }, (_, nth) =>
      buckets.subarray(start + nth * BUCKET_BYTES, start + (nth + 1) * BUCKET_BYTES),
    )
    start += tokens * BUCKET_BYTES
    return { ...own, sliceEvents, buckets: found }
  })
}

/** The size of the metadata of the events above `afterSeq`. PostgreSQL reads the lengths without the values. */
export async function sumMetadataBytes(
  db: Queryable,
  { workspaceId, afterSeq }: { workspaceId: WorkspaceId; afterSeq: number },
): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    ${KEEP_PLAN}
    select coalesce(sum(octet_length(metadata)), 0)::bigint as bytes
      from event where workspace_id = ${workspaceId} and seq > ${afterSeq}`.execute(db)
  return rows[0]?.bytes ?? 0
}
