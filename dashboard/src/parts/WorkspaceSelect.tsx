import { Select } from '@mantine/core'
import { useSession } from '../api/session-context.tsx'

type SelectProps = {
  /** Null until the member has chosen one. */
  value: string | null
  onChange: (id: string | null) => void
  isDisabled?: boolean
}

/**
 * The workspace that something new belongs to. The caller preselects the current one and no other, so that
 * nothing ends up in a workspace that the member didn't choose.
 */
export function WorkspaceSelect({ value, onChange, isDisabled = false }: SelectProps) {
  const { session } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  return (
    <Select
      label="Workspace"
      placeholder="Choose a workspace"
      required
      allowDeselect={false}
      searchable={customers.length > 8}
      disabled={isDisabled}
      data={customers.map(({ id, name }) => ({ value: id, label: name }))}
      value={value}
      onChange={onChange}
      nothingFoundMessage="No matching workspaces"
    />
  )
}
