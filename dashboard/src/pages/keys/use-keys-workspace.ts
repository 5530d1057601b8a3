import type { Workspace } from '../../api/session.ts'
import { useSigned } from '../../shell/session-context.tsx'

/**
 * Whose keys are shown; null: all. Where there is one workspace only it is always the chosen one, and the
 * company's own keys, which belong to none, would never be seen.
 */
export function useKeysWorkspace(): Workspace | null {
  const { session, workspace } = useSigned()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  return customers.length > 1 ? workspace : null
}
