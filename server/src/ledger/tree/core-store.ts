import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { EventCore } from '../chain.ts'

/** An event without its parts, and its stored hash. */
export type StoredCore = EventCore & { hash: string }

type CoreRow = {
  id: string
  seq: number
  timestampMs: number
  receivedAtMs: number
  companyId: string
  projectId: string | null
  category: string
  action: string
  traceId: string | null
  hash: string
  prevHash: string
  sealed: string
}

/** The next events of a chain that are in the table. Archived ones may be missing before, between or after. */
export async function listCores(
  db: Queryable,
  run: { workspaceId: WorkspaceId; afterSeq: number; toSeq: number; limit: number },
): Promise<StoredCore[]> {
  const { workspaceId, afterSeq, toSeq, limit } = run
  const { rows } = await sql<CoreRow>`
    select id, seq,
           (date_part('epoch', ts) * 1000)::bigint as "timestampMs",
           (date_part('epoch', received_at) * 1000)::bigint as "receivedAtMs",
           company_id as "companyId", project_id as "projectId", category, action,
           replace(trace_id::text, '-', '') as "traceId",
           encode(hash, 'hex') as hash, encode(prev_hash, 'hex') as "prevHash", sealed
      from event
     where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
     order by seq
     limit ${limit}`.execute(db)
  return rows.map((row) => ({
    ...row,
    workspaceId,
    id: assertId(row.id),
    companyId: assertId(row.companyId),
    projectId: row.projectId === null ? null : assertId(row.projectId),
  }))
}
