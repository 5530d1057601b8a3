import { Button, Collapse, Group, Paper, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { client, unwrap } from '../../../api/client.ts'
import { type Session, SESSION_KEY } from '../../../api/session.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { CopyableText } from '../../../parts/text/CopyableText.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { NameDialog } from '../../../parts/dialog/NameDialog.tsx'
import {
  type Patch,
  patchQuery,
  useOptimisticMutation,
  withChanged,
} from '../../../parts/use-optimistic-mutation.ts'
import { pluralize } from '../../../parts/text/pluralize.ts'
import {
  refreshCompany,
  type Workspaces,
  WORKSPACES_KEY,
  type WorkspaceSummary,
} from '../company.ts'
import { ProjectList } from './ProjectList.tsx'

export function WorkspaceCard({ workspace }: { workspace: WorkspaceSummary }) {
  const { id, name, kind, events, projects, keys, rotatingKeys, webhooks } = workspace
  const [isOpen, open] = useDisclosure(false)
  const [isRenaming, renaming] = useDisclosure(false)
  const rename = useOptimisticMutation({
    send: (typed: string) => {
      const params = { path: { workspaceId: id } }
      const body = { name: typed }
      return unwrap(client.PATCH('/dashboard/workspaces/{workspaceId}', { params, body }))
    },
    patches: (typed) => renamePatches(id, typed),
    refresh: refreshCompany,
  })
  if (kind === 'SYSTEM') return <SystemCard workspace={workspace} />
  return (
    <Paper withBorder p="md" component="section" aria-label={name}>
      <Group justify="space-between" align="flex-start" gap="xs">
        <div>
          <Text fw={600}>{name}</Text>
          <Text size="sm" className="soft numeric">
            {[
              pluralize(events, 'event'),
              pluralize(keys, 'active key'),
              // Replaced keys still work until their grace period ends.
              ...(rotatingKeys > 0 ? [pluralize(rotatingKeys, 'rotating key')] : []),
              pluralize(webhooks, 'webhook'),
            ].join(' · ')}
          </Text>
          <CopyableText text={id} />
        </div>
        <Group gap="xs">
          <Button
            size="xs"
            variant="default"
            onClick={open.toggle}
            aria-expanded={isOpen}
            rightSection={<Icon name={isOpen ? 'minus' : 'down'} size={12} />}
          >
            {pluralize(projects, 'project')}
          </Button>
          <Gate permission="company.manage" action="rename workspaces">
            <Button
              size="xs"
              variant="default"
              onClick={renaming.open}
              aria-label={`Rename ${name}`}
            >
              Rename
            </Button>
          </Gate>
        </Group>
      </Group>
      <ErrorBox error={rename.error} />
      <Collapse expanded={isOpen} keepMounted={false}>
        <ProjectList workspace={workspace} />
      </Collapse>
      <NameDialog
        isOpen={isRenaming}
        onClose={renaming.close}
        title="Rename workspace"
        label="Name"
        description="Only the name changes. The ID and all events stay the same."
        name={name}
        action="Rename workspace"
        onSave={(typed) => rename.mutate(typed)}
      />
    </Paper>
  )
}

/** The card reads the name from the list of workspaces, other pages read it from the session. */
function renamePatches(id: string, name: string): Patch[] {
  const renamed = <T extends { workspaces: { id: string; name: string }[] }>(data: T): T => ({
    ...data,
    workspaces: withChanged(data.workspaces, id, { name }),
  })
  return [
    patchQuery<Workspaces>(WORKSPACES_KEY, renamed),
    patchQuery<Session>(SESSION_KEY, renamed),
  ]
}

/** The system workspace has no projects, keys or members, and can't be renamed. */
function SystemCard({ workspace: { name, events } }: { workspace: WorkspaceSummary }) {
  return (
    <Paper withBorder p="md" component="section" aria-label={name}>
      <Group justify="space-between" align="flex-start" gap="xs">
        <div>
          <Text fw={600}>{name}</Text>
          <Text size="sm" className="soft numeric">
            Audit log of this dashboard, with its own chain · {pluralize(events, 'event')}
          </Text>
        </div>
        <AnchorLink to="/app/company/$section" params={{ section: 'activity' }}>
          Show activity
        </AnchorLink>
      </Group>
    </Paper>
  )
}
