import { Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'

/** Offers projects by name if one workspace is selected. Across workspaces it takes a project id. */
export function ProjectSelect({
  workspaceId,
  value,
  onChange,
  className,
}: {
  workspaceId: string | null
  value: string
  onChange: (value: string) => void
  className: string | undefined
}) {
  const { data } = useQuery({
    queryKey: ['projects', workspaceId],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/workspaces/{workspaceId}/projects', {
          params: { path: { workspaceId: workspaceId ?? '' } },
        }),
      ),
    enabled: workspaceId !== null,
  })
  if (workspaceId === null) {
    return (
      <TextInput
        aria-label="Project"
        placeholder="Project ID, or choose a workspace first"
        className={className}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  }
  const projects = data?.projects ?? []
  return (
    <Select
      aria-label="Project"
      placeholder={data && projects.length === 0 ? 'No projects' : 'Choose a project'}
      className={className}
      data={projects.map(({ id, name }) => ({ value: id, label: name }))}
      value={value === '' ? null : value}
      onChange={(id) => onChange(id ?? '')}
    />
  )
}
