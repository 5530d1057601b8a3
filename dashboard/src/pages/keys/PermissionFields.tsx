import { Checkbox, Select, Stack } from '@mantine/core'
import type { KeyScope } from './keys.ts'
import {
  isAllowedFor,
  type Limit,
  type Permission,
  PERMISSION_OPTIONS,
  PERMISSION_PRESETS,
} from './permissions.ts'

type FieldsProps = { scope: KeyScope; limit: Limit; onChange: (limit: Limit) => void }

/** What a new key is limited to: a preset, or any of the permissions. */
export function PermissionFields({ scope, limit, onChange }: FieldsProps) {
  return (
    <>
      <Select
        label="Permissions"
        description="An application server only needs to send events. You can’t change this later."
        allowDeselect={false}
        data={PERMISSION_PRESETS.filter(({ value }) => value !== 'write' || scope === 'WORKSPACE')}
        value={limit.preset}
        onChange={(preset) => preset !== null && onChange({ ...limit, preset })}
      />
      {limit.preset === 'custom' && (
        <CustomPermissions scope={scope} limit={limit} onChange={onChange} />
      )}
    </>
  )
}

function CustomPermissions({ scope, limit, onChange }: FieldsProps) {
  const choose = (name: Permission, isChosen: boolean) => {
    const others = limit.custom.filter((chosen) => chosen !== name)
    onChange({ ...limit, custom: isChosen ? [...others, name] : others })
  }
  return (
    <Stack gap="xs" role="group" aria-label="Custom permissions">
      {PERMISSION_OPTIONS.map(({ name, label, description }) => {
        const isAllowed = isAllowedFor(scope, name)
        return (
          <Checkbox
            key={name}
            label={label}
            description={isAllowed ? description : `Not available to ${scope.toLowerCase()} keys.`}
            disabled={!isAllowed}
            checked={isAllowed && limit.custom.includes(name)}
            onChange={(event) => choose(name, event.currentTarget.checked)}
          />
        )
      })}
    </Stack>
  )
}
