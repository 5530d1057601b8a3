import { Select } from '@mantine/core'
import { useSession } from '../api/session-context.tsx'

const ALL = 'all'

/** Chooses the workspace that the pages show. With a single workspace there is no "All workspaces". */
export function WorkspacePicker() {
  const { session, workspace, selectWorkspace } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  const options = customers.map(({ id, name }) => ({ value: id, label: name }))
  return (
    <Select
      aria-label="Workspace"
      size="xs"
      w={220}
      allowDeselect={false}
      searchable={options.length > 8}
      data={options.length > 1 ? [{ value: ALL, label: 'All workspaces' }, ...options] : options}
      value={workspace?.id ?? ALL}
      onChange={(value) => selectWorkspace(value === ALL ? null : value)}
      nothingFoundMessage="No matching workspaces"
    />
  )
}
