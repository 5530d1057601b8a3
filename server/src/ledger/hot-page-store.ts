import { type RawBuilder, sql } from 'kysely'
import { copyOut, CopyTooLargeError, splitCopyLine } from '../platform/copy-out.ts'
import { assertId, type WorkspaceId } from '../platform/id.ts'
import type { Database, Queryable } from '../platform/pg.ts'
import type { SealedEvent } from './event.ts'
import type { EventFilter } from './event-filter.ts'
import { filterConditions } from './event-store.ts'

/** A statement looks at no more events than these, however few of them match. */
const SEQS_PER_PAGE_MAX = 50_000
/** A page that turns out larger is read again in smaller ones. */
const PAGE_BYTES_MAX = 8 * 1_024 * 1_024

/** In the order of `toEvent` below. Plain columns: what can be made here is not made by the database. */
const COLUMNS = sql`
  seq, id, (date_part('epoch', ts) * 1000)::bigint, (date_part('epoch', received_at) * 1000)::bigint,
  company_id, project_id, category, action, actor, resource, metadata, trace_id,
  encode(hash, 'hex'), encode(prev_hash, 'hex'), sealed, salts`

/** Events of a chain in its order, and up to where it was looked. */
export type HotPage = { events: SealedEvent[]; lookedSeq: number }

/** The events of a run that match, as many as wanted or fewer: `lookedSeq` says where to go on. */
export async function readHotPage(
  { pool, db }: Pick<Database, 'pool' | 'db'>,
  {
    workspaceId,
    fromSeq,
    toSeq,
    filter,
    limit,
  }: {
    workspaceId: WorkspaceId
    fromSeq: number
    toSeq: number
    filter: EventFilter
    limit: number
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
  let bytes: Buffer
  try {
    bytes = await copyOut(pool, query, { bytesMax: PAGE_BYTES_MAX })
  } catch (error) {
    if (!(error instanceof CopyTooLargeError) || limit === 1) throw error
    const smaller = { workspaceId, fromSeq, toSeq, filter, limit: Math.ceil(limit / 8) }
    return await readHotPage({ pool, db }, smaller)
  }
  const events = parsePage(bytes.toString('utf8'), workspaceId)
  const isWhole = events.length < limit
  return { events, lookedSeq: isWhole ? endSeq : (events.at(-1)?.seq ?? endSeq) }
}

/** How many events of a run are in the table. */
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

function parsePage(text: string, workspaceId: WorkspaceId): SealedEvent[] {
  const events: SealedEvent[] = []
  for (let start = 0; start < text.length;) {
    const end = text.indexOf('\n', start)
    events.push(toEvent(splitCopyLine(text.slice(start, end)), workspaceId))
    start = end + 1
  }
  return events
}

function toEvent(fields: readonly (string | null)[], workspaceId: WorkspaceId): SealedEvent {
  const [seq, id, timestampMs, receivedAtMs, companyId, projectId, category, action] = fields
  const [actor, resource, metadata, traceId, hash, prevHash, sealed, salts] = fields.slice(8)
  return {
    seq: Number(seq),
    id: assertId(id ?? ''),
    timestampMs: Number(timestampMs),
    receivedAtMs: Number(receivedAtMs),
    companyId: assertId(companyId ?? ''),
    workspaceId,
    projectId: projectId ? assertId(projectId) : null,
    category: category ?? '',
    action: action ?? '',
    actor: actor ?? null,
    resource: resource ?? null,
    metadata: metadata ?? null,
    traceId: traceId?.replaceAll('-', '') ?? null,
    hash: hash ?? '',
    prevHash: prevHash ?? '',
    sealed: sealed ?? '',
    salts: salts ?? '',
  }
}
