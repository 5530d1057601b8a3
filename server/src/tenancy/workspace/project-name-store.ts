import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { COMPANY_BOUNDS } from '../plans.ts'

/** Maps the ids of the workspaces' projects to their names. */
export async function listProjectNames(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
): Promise<Map<string, string>> {
  if (workspaceIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('project')
    .select(['id', 'name'])
    .where('workspace_id', 'in', workspaceIds)
    .limit(workspaceIds.length * COMPANY_BOUNDS.projectsPerWorkspaceMax)
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}
