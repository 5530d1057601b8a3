import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import type { paths } from '../../../api/schema.d.ts'
import type { Cadence, Export, ExportBody } from '../exports.ts'

export type Template =
  paths['/dashboard/export-templates']['get']['responses'][200]['content']['application/json']['templates'][number]

const KEY = ['export-templates'] as const

/** Not paged: a company has at most a few hundred. */
export function useTemplates() {
  return useQuery({
    queryKey: KEY,
    queryFn: () => unwrap(client.GET('/dashboard/export-templates')),
  })
}

export async function createTemplate(body: { name: string; body: ExportBody }): Promise<void> {
  await unwrap(client.POST('/dashboard/export-templates', { body }))
  await refresh()
}

export async function changeTemplate(
  templateId: string,
  body: { name: string; body: ExportBody },
): Promise<void> {
  const params = { path: { templateId } }
  await unwrap(client.PATCH('/dashboard/export-templates/{templateId}', { params, body }))
  await refresh()
}

export async function deleteTemplate(templateId: string): Promise<void> {
  const params = { path: { templateId } }
  await unwrap(client.DELETE('/dashboard/export-templates/{templateId}', { params }))
  await refresh()
}

export function runTemplate(templateId: string): Promise<Export> {
  const params = { path: { templateId } }
  return unwrap(client.POST('/dashboard/export-templates/{templateId}/run', { params }))
}

export async function scheduleTemplate(templateId: string, cadence: Cadence): Promise<void> {
  const params = { path: { templateId } }
  const path = '/dashboard/export-templates/{templateId}/schedule'
  await unwrap(client.PUT(path, { params, body: { cadence } }))
  await refresh()
}

export async function stopSchedule(templateId: string): Promise<void> {
  const params = { path: { templateId } }
  await unwrap(client.DELETE('/dashboard/export-templates/{templateId}/schedule', { params }))
  await refresh()
}

function refresh(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: KEY })
}
