import { getRouteApi } from '@tanstack/react-router'
import { useSigned } from '../../shell/session-context.tsx'
import type { Export } from './exports.ts'

const route = getRouteApi('/shell/app/exports')

/** Marks an export in the list of all; one of another workspace than the chosen shows with all of them. */
export function useShowExport(): (job: Export) => void {
  const { workspace, chooseWorkspace } = useSigned()
  const navigate = route.useNavigate()
  return ({ id, workspaceIds, filters }) => {
    const ids = filters.workspaceId === undefined ? workspaceIds : [filters.workspaceId]
    if (workspace !== null && ids.length > 0 && !ids.includes(workspace.id)) chooseWorkspace(null)
    void navigate({ search: { job: id } })
  }
}
