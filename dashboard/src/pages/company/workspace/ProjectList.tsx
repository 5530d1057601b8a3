import { ActionIcon, Button, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { CopyableText } from '../../../parts/text/CopyableText.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { NameDialog } from '../../../parts/dialog/NameDialog.tsx'
import rows from '../../../parts/table/DataTable.module.css'
import { DataTable } from '../../../parts/table/DataTable.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import {
  patchQuery,
  useOptimisticMutation,
  withChanged,
} from '../../../parts/use-optimistic-mutation.ts'
import { type Project, type Projects, refreshCompany, type WorkspaceSummary } from '../company.ts'

export function ProjectList({ workspace: { id, name } }: { workspace: WorkspaceSummary }) {
  const params = { path: { workspaceId: id } }
  const projects = useQuery({
    queryKey: ['projects', id],
    queryFn: () => unwrap(client.GET('/dashboard/workspaces/{workspaceId}/projects', { params })),
  })
  const [isCreating, setCreating] = useState(false)
  const [renamed, setRenamed] = useState<Project | null>(null)
  return (
    <>
      <ErrorBox error={projects.error} />
      {projects.isPending && <Skeleton height={60} radius="sm" mt="sm" />}
      {projects.data?.projects.length === 0 && (
        <Text size="sm" className="soft" mt="sm" maw={560}>
          No projects yet. Events can refer to a project by its ID (projectId), and the explorer,
          exports and webhooks can be limited to a project.
        </Text>
      )}
      {projects.data !== undefined && projects.data.projects.length > 0 && (
        <ProjectTable
          workspaceId={id}
          workspaceName={name}
          projects={projects.data.projects}
          onRename={setRenamed}
        />
      )}
      <Gate permission="company.manage" action="create projects">
        <Button
          size="xs"
          variant="default"
          mt="sm"
          onClick={() => setCreating(true)}
          leftSection={<Icon name="plus" size={14} />}
        >
          Create project
        </Button>
      </Gate>
      <NameDialog
        isOpen={isCreating}
        onClose={() => setCreating(false)}
        title={`Create project in ${name}`}
        label="Name"
        action="Create project"
        onSave={async (typed) => {
          const body = { name: typed }
          await unwrap(
            client.POST('/dashboard/workspaces/{workspaceId}/projects', { params, body }),
          )
          await refreshCompany()
        }}
      />
      <RenameProject workspaceId={id} project={renamed} onClose={() => setRenamed(null)} />
    </>
  )
}

function ProjectTable({
  workspaceId,
  workspaceName,
  projects,
  onRename,
}: {
  workspaceId: string
  workspaceName: string
  projects: readonly Project[]
  onRename: (project: Project) => void
}) {
  return (
    <DataTable label={`Projects in ${workspaceName}`} columns={['Project', 'ID', 'Created']}>
      {projects.map((project) => (
        <tr key={project.id}>
          <td>
            <AnchorLink to="/app/explorer" search={{ workspaceId, projectId: project.id }}>
              {project.name}
            </AnchorLink>
          </td>
          <td>
            <CopyableText text={project.id} />
          </td>
          <td data-label="Created">
            <TimeText at={project.createdAt} style="day" />
          </td>
          <td className={rows.actions}>
            <Gate permission="company.manage" action="rename projects">
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Rename ${project.name}`}
                onClick={() => onRename(project)}
              >
                <Icon name="edit" size={14} />
              </ActionIcon>
            </Gate>
          </td>
        </tr>
      ))}
    </DataTable>
  )
}

function RenameProject({
  workspaceId,
  project,
  onClose,
}: {
  workspaceId: string
  project: Project | null
  onClose: () => void
}) {
  const rename = useOptimisticMutation({
    send: ({ id, name }: Pick<Project, 'id' | 'name'>) =>
      unwrap(
        client.PATCH('/dashboard/workspaces/{workspaceId}/projects/{projectId}', {
          params: { path: { workspaceId, projectId: id } },
          body: { name },
        }),
      ),
    patches: ({ id, name }) => [
      patchQuery<Projects>(['projects', workspaceId], (data) => ({
        ...data,
        projects: withChanged(data.projects, id, { name }),
      })),
    ],
    refresh: refreshCompany,
  })
  return (
    <>
      <ErrorBox error={rename.error} />
      <NameDialog
        isOpen={project !== null}
        onClose={onClose}
        title="Rename project"
        label="Name"
        description="Only the name changes. The ID and all events stay the same."
        name={project?.name ?? ''}
        action="Rename project"
        onSave={(name) => project && rename.mutate({ id: project.id, name })}
      />
    </>
  )
}
