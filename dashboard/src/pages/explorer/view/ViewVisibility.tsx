import { Radio, Stack } from '@mantine/core'
import type { View } from './views.ts'

type VisibilityProps = {
  visibility: View['visibility']
  onChange: (visibility: View['visibility']) => void
  /** Null means all workspaces. */
  workspaceName: string | null
}

export function ViewVisibility({ visibility, onChange, workspaceName }: VisibilityProps) {
  return (
    <Radio.Group
      label="Visibility"
      value={visibility}
      onChange={(value) => onChange(value === 'WORKSPACE' ? 'WORKSPACE' : 'PRIVATE')}
    >
      <Stack gap="xs" mt={6}>
        <Radio value="PRIVATE" label="Only you" />
        <Radio
          value="WORKSPACE"
          label={
            workspaceName === null ? 'All members' : `Everyone with access to ${workspaceName}`
          }
          description="Members see only events in workspaces they can access."
        />
      </Stack>
    </Radio.Group>
  )
}
