import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { SearchToken, TokenizedEvent } from './search-tokens.ts'
import { BUCKET_BYTES } from './token-filter.ts'

/** A run of a chain and the tokens of its events. Without tokens, nothing is known about them. */
export type SearchBlock = {
  firstSeq: number
  lastSeq: number
  minTimestampMs: number
  maxTimestampMs: number
  tokens: Buffer
}

export type BlockEvent = TokenizedEvent & { seq: number; timestampMs: number }

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
  await sql`
    insert into search_block (workspace_id, first_seq, last_seq, min_ts, max_ts, tokens)
    select ${workspaceId}, first_seq, last_seq, min_ts, max_ts, tokens
      from unnest(${blocks.map(({ firstSeq }) => firstSeq)}::bigint[],
                  ${blocks.map(({ lastSeq }) => lastSeq)}::bigint[],
                  ${blocks.map(({ minTimestampMs }) => new Date(minTimestampMs))}::timestamptz[],
                  ${blocks.map(({ maxTimestampMs }) => new Date(maxTimestampMs))}::timestamptz[],
                  ${blocks.map(({ tokens }) => tokens)}::bytea[])
             as b (first_seq, last_seq, min_ts, max_ts, tokens)`.execute(trx)
}

/** Canonical JSON escapes it, so it separates texts. A text that is null is empty here, which JSON never is. */
const SEPARATOR = '\u0001'

type RunRow = {
  seqs: string | null
  timesMs: string
  traceIds: string
  actors: string
  metadata: string
  isCut: boolean
}

/**
 * A run of a chain above `afterSeq`, up to `limit` events or until their metadata reaches `bytesMax`, and at
 * least one. PostgreSQL reads the lengths without the values. `isCut` if the size ended the run. One row has all
 * events, because decoding a row of six columns takes as long as finding the tokens of an event.
 */
export async function listBlockRun(
  db: Queryable,
  {
    workspaceId,
    afterSeq,
    toSeq,
    limit,
    bytesMax,
  }: {
    workspaceId: WorkspaceId
    afterSeq: number
    toSeq: number
    limit: number
    bytesMax: number
  },
): Promise<{ events: BlockEvent[]; isCut: boolean }> {
  const { rows } = await sql<RunRow>`
    ${KEEP_PLAN}
    select string_agg(seq::text, ',' order by seq) as seqs,
           string_agg((date_part('epoch', ts) * 1000)::bigint::text, ',' order by seq) as "timesMs",
           string_agg(coalesce(replace(trace_id::text, '-', ''), ''), ',' order by seq) as "traceIds",
           string_agg(coalesce(actor, ''), ${SEPARATOR} order by seq) as actors,
           string_agg(coalesce(metadata, ''), ${SEPARATOR} order by seq) as metadata,
           not bool_or(is_last) as "isCut"
      from (select run.*, lead(true) over listed is null as is_last,
                   sum(coalesce(octet_length(metadata), 0)) over (listed rows unbounded preceding)
                     - coalesce(octet_length(metadata), 0) as bytes_before
              from (select seq, ts, trace_id, actor, metadata from event
                     where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
                     order by seq
                     limit ${limit}) as run
            window listed as (order by seq)) as measured
     where bytes_before < ${bytesMax}`.execute(db)
  const row = rows[0]
  if (!row || row.seqs === null) return { events: [], isCut: false }
  const times = row.timesMs.split(',')
  const traceIds = row.traceIds.split(',')
  const actors = row.actors.split(SEPARATOR)
  const metadata = row.metadata.split(SEPARATOR)
  const events = row.seqs.split(',').map((seq, nth) => ({
    seq: Number(seq),
    timestampMs: Number(times[nth]),
    traceId: traceIds[nth] || null,
    actor: actors[nth] || null,
    metadata: metadata[nth] || null,
  }))
  return { events, isCut: row.isCut }
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
export type BlockBuckets = Omit<SearchBlock, 'tokens'> & { buckets: readonly Buffer[] | null }

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
    substring(b.tokens
              from 1 + ((${token}::bigint % (octet_length(b.tokens) / ${sql.lit(BUCKET_BYTES)}))
                        * ${sql.lit(BUCKET_BYTES)})::int
              for ${sql.lit(BUCKET_BYTES)})`
  const { rows } = await sql<{
    floorSeq: number
    seenSeq: number
    headSeq: number
    firstSeq: number | null
    lastSeq: number
    minTimestampMs: number
    maxTimestampMs: number
    buckets: Buffer | null
  }>`
    select w.floor_seq as "floorSeq", w.seen_seq as "seenSeq", w.head_seq as "headSeq", b.*
      from (select coalesce((select floor_seq from search_watermark where workspace_id = ${workspaceId}),
                            ${afterSeq}::bigint) as floor_seq,
                   coalesce((select seen_seq from search_watermark where workspace_id = ${workspaceId}),
                            ${afterSeq}::bigint) as seen_seq,
                   coalesce((select seq from chain_head where workspace_id = ${workspaceId}), 0) as head_seq) as w
      left join lateral (
        select b.first_seq as "firstSeq", b.last_seq as "lastSeq",
               (date_part('epoch', b.min_ts) * 1000)::bigint as "minTimestampMs",
               (date_part('epoch', b.max_ts) * 1000)::bigint as "maxTimestampMs",
               case when octet_length(b.tokens) > 0
                    then ${sql.join(tokens.map(bucket), sql` || `)} end as buckets
          from search_block b
         where b.workspace_id = ${workspaceId} and b.last_seq > ${afterSeq}
           and b.first_seq <= ${toSeq}
           and (${fromMs === null ? null : new Date(fromMs)}::timestamptz is null
                or b.max_ts >= ${fromMs === null ? null : new Date(fromMs)})
           and (${toMs === null ? null : new Date(toMs)}::timestamptz is null
                or b.min_ts < ${toMs === null ? null : new Date(toMs)})
         limit ${limit}
      ) as b on true`.execute(db)
  const blocks = rows.flatMap(({ floorSeq: _floor, seenSeq: _seen, headSeq: _head, ...row }) =>
    row.firstSeq === null ? [] : [{ ...row, firstSeq: row.firstSeq, buckets: split(row.buckets) }],
  )
  const { floorSeq = 0, seenSeq = 0, headSeq = 0 } = rows[0] ?? {}
  return { blocks, floorSeq, seenSeq, headSeq }
}

/** The size of the metadata of the events above `afterSeq`. PostgreSQL reads the lengths without the values. */
export async function sumMetadataBytes(
  db: Queryable,
  { workspaceId, afterSeq }: { workspaceId: WorkspaceId; afterSeq: number },
): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select coalesce(sum(octet_length(metadata)), 0)::bigint as bytes
      from event where workspace_id = ${workspaceId} and seq > ${afterSeq}`.execute(db)
  return rows[0]?.bytes ?? 0
}

function split(buckets: Buffer | null): Buffer[] | null {
  if (buckets === null) return null
  return Array.from({ length: buckets.length / BUCKET_BYTES }, (_, nth) =>
    buckets.subarray(nth * BUCKET_BYTES, (nth + 1) * BUCKET_BYTES),
  )
}
