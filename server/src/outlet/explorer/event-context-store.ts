import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** An event as listed beside its neighbors in the chain. */
type ContextEvent = {
  id: string
  seq: number
  timestamp: Date
  category: string
  action: string
  actorId: string | null
  actorEmail: string | null
}

/** The events of a part of a chain that are in the table, in order. */
export async function listContext(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
): Promise<ContextEvent[]> {
  const { rows } = await sql<ContextEvent>`
    select id, seq, ts as timestamp, category, action, actor_id as "actorId",
           actor_email as "actorEmail"
      from event
     where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}
     order by seq`.execute(db)
  return rows
}
