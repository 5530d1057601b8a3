import { Alert, type AlertProps } from '@mantine/core'
import { Icon } from '../Icon.tsx'

/** A warning that something stored or shown can't be relied on. */
export function WarningBox({ color = 'red', mb = 'md', ...props }: AlertProps) {
  return (
    <Alert
      {...props}
      color={color}
      mb={mb}
      variant="light"
      role="alert"
      icon={<Icon name="alert" />}
    />
  )
}
