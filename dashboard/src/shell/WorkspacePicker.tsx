import { NativeSelect } from '@mantine/core'
import { useLocation } from '@tanstack/react-router'
import { useSession } from '../api/session-context.tsx'
import { COMPANY_NAVIGATION, MAIN_NAVIGATION } from './navigation.ts'

const ALL = 'all'

const PATHS: readonly string[] = [...MAIN_NAVIGATION, ...COMPANY_NAVIGATION]
  .filter(({ isByWorkspace }) => isByWorkspace)
  .map(({ to }) => to)

/**
 * Chooses the workspace that the page shows. Pages that don't depend on it have no picker. With a single
 * workspace there is no "All workspaces". A native list, because every page loads it.
 */
export function WorkspacePicker() {
  const isUsed = useLocation({
    // The allowlist is that of the company, unlike the other tabs of its page.
    select: ({ pathname, search }) =>
      PATHS.includes(pathname.replace(/\/$/, '')) && search.tab !== 'allowlist',
  })
  const { session, workspace, selectWorkspace } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  const options = customers.map(({ id, name }) => ({ value: id, label: name }))
  // Keeps the user menu on the right.
  if (!isUsed) return <span />
  return (
    <NativeSelect
      aria-label="Workspace"
      size="xs"
      w={220}
      data={options.length > 1 ? [{ value: ALL, label: 'All workspaces' }, ...options] : options}
      value={workspace?.id ?? ALL}
      onChange={({ currentTarget: { value } }) => selectWorkspace(value === ALL ? null : value)}
    />
  )
}
