import { assertId, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'

/** Maps each workspace to the seq of its chain's last event. */
export async function listHeadSeqs(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
): Promise<Map<WorkspaceId, number>> {
  if (workspaceIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('chain_head')
    .select(['workspace_id', 'seq'])
    .where('workspace_id', 'in', workspaceIds)
    .execute()
  return new Map(rows.map(({ workspace_id, seq }) => [assertId(workspace_id), seq]))
}
