import { sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'

/**
 * Whether the workspace has such an event with a time less than `withinMs` from now. An event in the future
 * counts too, because the clocks of two nodes differ.
 */
export async function hasEventAbout(
  db: Queryable,
  {
    workspaceId,
    action,
    resourceId,
  }: { workspaceId: WorkspaceId; action: string; resourceId: string },
  { nowMs, withinMs }: { nowMs: number; withinMs: number },
): Promise<boolean> {
  const { rows } = await sql`
    select 1
      from event
     where workspace_id = ${workspaceId} and resource_id = ${resourceId} and action = ${action}
       and ts > ${new Date(nowMs - withinMs)} and ts < ${new Date(nowMs + withinMs)}
     limit 1`.execute(db)
  return rows.length > 0
}
