import { getRouteApi } from '@tanstack/react-router'
import { useSession } from '../../../api/session-context.tsx'
import type { Export } from '../exports.ts'

const route = getRouteApi('/shell/app/exports')

/**
 * Highlights an export in the unfiltered list. Switches to all workspaces if it belongs to another one.
 */
export function useShowExport(): (job: Export) => void {
  const { workspace, selectWorkspace } = useSession()
  const navigate = route.useNavigate()
  return ({ id, workspaceIds, filters }) => {
    const ids = filters.workspaceId === undefined ? workspaceIds : [filters.workspaceId]
    if (workspace !== null && ids.length > 0 && !ids.includes(workspace.id)) selectWorkspace(null)
    void navigate({ search: { job: id } })
  }
}
