import { Button, Skeleton, Stack, Text } from '@mantine/core'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { DataTable } from '../../../parts/table/DataTable.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { ExportGate } from '../ExportGate.tsx'
import { namesProject } from '../export-text.ts'
import { useProjectNames } from '../form/project-names.ts'
import { TemplateRow } from './TemplateRow.tsx'
import { useTemplates } from './templates.ts'

/** The saved export templates, ready to run. */
export function TemplateList({ onNew }: { onNew: () => void }) {
  const { data, error, isPending, refetch } = useTemplates()
  const { workspace } = useSession()
  // A template without a workspace exports all workspaces that the member who runs it sees.
  const templates = (data?.templates ?? []).filter(
    ({ workspaceId }) => workspace === null || workspaceId === null || workspaceId === workspace.id,
  )
  const projectName = useProjectNames(
    templates.some(({ body: { filters = {} } }) => namesProject(filters)),
  )
  if (isPending) return <ListSkeleton />
  if (error) return <ErrorBox error={error} onRetry={refetch} />
  if (templates.length === 0) {
    return (
      <EmptyState
        icon="star"
        title={workspace ? `No templates for ${workspace.name} yet` : 'No templates yet'}
      >
        <Text size="sm" className="soft" ta="center" maw={460}>
          A template is a saved export, such as “Logins last month”. To create one, fill in a new
          export and choose “Save as template”. Members with access to its workspace can run it.
        </Text>
        <ExportGate action="create exports">
          <Button size="xs" mt="xs" onClick={onNew}>
            Create export
          </Button>
        </ExportGate>
      </EmptyState>
    )
  }
  return (
    <DataTable label="Templates" columns={['Name', 'Export', 'Saved by']}>
      {templates.map((template) => (
        <TemplateRow template={template} projectName={projectName} key={template.id} />
      ))}
    </DataTable>
  )
}

function ListSkeleton() {
  return (
    <Stack gap={6} role="status" aria-label="Loading templates">
      {[1, 2, 3].map((line) => (
        <Skeleton height={48} radius="sm" key={line} />
      ))}
    </Stack>
  )
}
