import { Button, Group, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useSession } from '../../api/session-context.tsx'
import { EmptyState } from '../../parts/message/EmptyState.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { EventTypeDetail } from './EventTypeDetail.tsx'
import { EventTypeList } from './EventTypeList.tsx'

const route = getRouteApi('/shell/app/event-types')

/** The types of a workspace's events, learned from the events themselves. */
export function EventTypesPage() {
  const { workspace } = useSession()
  const { category, action } = route.useSearch()
  useLinkedWorkspace()
  if (workspace && category !== undefined && action !== undefined) {
    return <EventTypeDetail workspaceId={workspace.id} category={category} action={action} />
  }
  return (
    <>
      <PageHeader
        title="Event types"
        description="Annals learns the types of your events, and the shape of their metadata, from the events themselves. When a shape changes, the type is flagged for 30 days."
      />
      {workspace ? (
        <EventTypeList workspaceId={workspace.id} key={workspace.id} />
      ) : (
        <ChooseWorkspace />
      )}
    </>
  )
}

/** A link selects its workspace, and later the member can pick another one. */
function useLinkedWorkspace(): void {
  const { workspaceId: linked } = route.useSearch()
  const { session, selectWorkspace } = useSession()
  const isOffered = session.workspaces.some(({ id, kind }) => id === linked && kind === 'CUSTOMER')
  useEffect(() => {
    if (linked !== undefined && isOffered) selectWorkspace(linked)
  }, [linked, isOffered, selectWorkspace])
}

/** Types belong to one workspace. */
function ChooseWorkspace() {
  const { session, selectWorkspace } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  return (
    <EmptyState icon="braces" title="Choose a workspace">
      <Text size="sm" className="soft" ta="center" maw={420}>
        Each workspace has its own event types.
      </Text>
      <Group gap="xs" justify="center" mt="xs">
        {customers.map(({ id, name }) => (
          <Button size="xs" variant="default" key={id} onClick={() => selectWorkspace(id)}>
            {name}
          </Button>
        ))}
      </Group>
    </EmptyState>
  )
}
