import { Button, Skeleton, Stack } from '@mantine/core'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { NameDialog } from '../../parts/NameDialog.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { refreshCompany, useWorkspaces, type WorkspaceSummary } from './company.ts'
import { WorkspaceCard } from './WorkspaceCard.tsx'

type Dialog = 'create' | 'company'

/** The company's workspaces, each with its projects. */
export function WorkspacesSection() {
  const { session } = useSigned()
  const workspaces = useWorkspaces()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const close = () => setDialog(null)
  return (
    <>
      <PageHeader
        title="Workspaces"
        about={`Where ${session.company.name} keeps its events. Each workspace has a chain, keys and webhooks of its own, and projects to sort its events by.`}
      >
        <Gate permission="company.manage" what="rename the company">
          <Button size="xs" variant="default" onClick={() => setDialog('company')}>
            Rename the company
          </Button>
        </Gate>
        <Gate permission="company.manage" what="create workspaces">
          <Button
            size="xs"
            leftSection={<Icon name="plus" size={14} />}
            onClick={() => setDialog('create')}
          >
            Create a workspace
          </Button>
        </Gate>
      </PageHeader>
      <ErrorBox error={workspaces.error} onRetry={workspaces.refetch} />
      <Stack gap="sm">
        {workspaces.isPending &&
          [1, 2].map((card) => <Skeleton height={78} radius="sm" key={card} />)}
        {workspaces.data?.workspaces.toSorted(systemLast).map((workspace) => (
          <WorkspaceCard workspace={workspace} key={workspace.id} />
        ))}
      </Stack>
      <NameDialog
        isOpen={dialog === 'create'}
        onClose={close}
        title="Create a workspace"
        label="Name"
        description="One for each product or environment is usual: Production, Staging."
        action="Create"
        onSave={async (name) => {
          await unwrap(client.POST('/dashboard/workspaces', { body: { name } }))
          await refreshCompany()
        }}
      />
      <NameDialog
        isOpen={dialog === 'company'}
        onClose={close}
        title="Rename the company"
        label="Name"
        name={session.company.name}
        action="Rename"
        onSave={async (name) => {
          await unwrap(client.PATCH('/dashboard/company', { body: { name } }))
          await refreshCompany()
        }}
      />
    </>
  )
}

/** The system workspace comes last, because it is needed least. */
function systemLast(one: WorkspaceSummary, other: WorkspaceSummary): number {
  return Number(one.kind === 'SYSTEM') - Number(other.kind === 'SYSTEM')
}
