import { Button, Skeleton, Stack } from '@mantine/core'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { NameDialog } from '../../../parts/dialog/NameDialog.tsx'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { refreshCompany, useWorkspaces, type WorkspaceSummary } from '../company.ts'
import { WorkspaceCard } from './WorkspaceCard.tsx'

type Dialog = 'create' | 'company'

/** The company's workspaces, each with its projects. */
export function WorkspacesSection() {
  const { session } = useSession()
  const workspaces = useWorkspaces()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const close = () => setDialog(null)
  return (
    <>
      <PageHeader
        title="Workspaces"
        description={`Workspaces divide the events of ${session.company.name}. Each one has its own chain, keys, webhooks and projects.`}
      >
        <Gate permission="company.manage" action="rename the company">
          <Button size="xs" variant="default" onClick={() => setDialog('company')}>
            Rename company
          </Button>
        </Gate>
        <Gate permission="company.manage" action="create workspaces">
          <Button
            size="xs"
            leftSection={<Icon name="plus" size={14} />}
            onClick={() => setDialog('create')}
          >
            Create workspace
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
        title="Create workspace"
        label="Name"
        description="Typically one per product or environment, such as Production or Staging."
        action="Create workspace"
        onSave={async (name) => {
          await unwrap(client.POST('/dashboard/workspaces', { body: { name } }))
          await refreshCompany()
        }}
      />
      <NameDialog
        isOpen={dialog === 'company'}
        onClose={close}
        title="Rename company"
        label="Name"
        name={session.company.name}
        action="Rename company"
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
