import { MultiSelect, Radio, Stack } from '@mantine/core'
import { useSession } from '../../../api/session-context.tsx'
import { needsWorkspaces, type Role, ROLES } from './members.ts'

export type Grant = { role: Role; workspaceIds: string[] }

/** A role, and the workspaces that it applies to. */
export function GrantFields({
  grant,
  onChange,
}: {
  grant: Grant
  onChange: (grant: Grant) => void
}) {
  const { session, hasPermission } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  return (
    <>
      <Radio.Group
        label="Role"
        value={grant.role}
        onChange={(value) => {
          const role = ROLES.find((one) => one.value === value)?.value
          if (role) onChange({ ...grant, role })
        }}
      >
        <Stack gap="xs" mt={6}>
          {ROLES.map(({ value, label, description }) => {
            const isForbidden = value === 'OWNER' && !hasPermission('owners.manage')
            return (
              <Radio
                key={value}
                value={value}
                label={label}
                disabled={isForbidden}
                description={
                  isForbidden ? `${description} Only owners can add owners.` : description
                }
              />
            )
          })}
        </Stack>
      </Radio.Group>
      {needsWorkspaces(grant.role) && (
        <MultiSelect
          label="Workspaces"
          description="The member can access only these workspaces."
          required
          searchable
          data={customers.map(({ id, name }) => ({ value: id, label: name }))}
          value={grant.workspaceIds}
          onChange={(workspaceIds) => onChange({ ...grant, workspaceIds })}
          // Below the field, the list would cover the next button.
          comboboxProps={{ position: 'top' }}
          nothingFoundMessage="No matching workspaces"
        />
      )}
    </>
  )
}
