import { Group, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'

/** The title of a page, a one-line description and its actions. */
export function PageHeader({
  title,
  description,
  children,
}: {
  title: string
  description?: string
  children?: ReactNode
}) {
  useDocumentTitle(`${title} · Annals`)
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="sm">
      <div>
        {/* A URL or an action can be one long word. */}
        <Title order={1} style={{ overflowWrap: 'anywhere' }}>
          {title}
        </Title>
        {description && (
          <Text className="soft" size="sm" maw={640} mt={4}>
            {description}
          </Text>
        )}
      </div>
      <Group gap="xs">{children}</Group>
    </Group>
  )
}
