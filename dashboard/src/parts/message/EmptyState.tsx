import { Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../Icon.tsx'
import { useMissingTables } from '../use-missing-tables.ts'

/** Replaces an empty list with what it would contain and how to add it. */
export function EmptyState({
  icon,
  title,
  children,
}: {
  icon: IconName
  title: string
  children?: ReactNode
}) {
  // The list isn't known to be empty. The page already says so.
  if (useMissingTables() !== '') return null
  return (
    <Stack align="center" gap="xs" py={48} px="md">
      <span className="soft">
        <Icon name={icon} size={28} />
      </span>
      <Text fw={600}>{title}</Text>
      {children}
    </Stack>
  )
}
