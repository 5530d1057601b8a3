import type { Workspace } from '../../api/session.ts'
import { useSession } from '../../api/session-context.tsx'

/**
 * The workspace whose keys are shown. Null shows all keys. A single workspace is always selected, which
 * would hide the company keys, because they belong to no workspace.
 */
export function useKeysWorkspace(): Workspace | null {
  const { session, workspace } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  return customers.length > 1 ? workspace : null
}
