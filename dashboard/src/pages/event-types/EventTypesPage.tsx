import { Button, Group, Text } from '@mantine/core'
import { useSession } from '../../api/session-context.tsx'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { EventTypeList } from './EventTypeList.tsx'

/** The types of a workspace's events, learned from the events themselves. */
export function EventTypesPage() {
  const { workspace } = useSession()
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
