import { useMemo } from 'react'
import { useSession } from '../../../api/session-context.tsx'
import type { Names } from '../list/columns.ts'
import { useProjectNames } from '../event-queries.ts'

/** Resolves the ids in an event to names. Unknown ids stay as they are. */
export function useNames(workspaceId: string | undefined): Names {
  const { session } = useSession()
  const project = useProjectNames(workspaceId)
  return useMemo(() => {
    const workspaces = new Map(session.workspaces.map(({ id, name }) => [id, name]))
    return { project, workspace: (id) => workspaces.get(id) ?? id }
  }, [project, session])
}
