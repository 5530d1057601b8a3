import { ApiError } from '../errors.ts'
import { destinationFault } from '../outlet/webhook/destination.ts'
import { parseId, type ProjectId, type WorkspaceId } from '../platform/id.ts'
import type { WebhookDeps } from './webhook-resource.ts'

/** Part of reading the body: nothing is looked up, and nothing is dialled. */
export function refuseDestination(
  url: string | undefined,
  { destinationRules }: Pick<WebhookDeps, 'destinationRules'>,
): void {
  const fault = url === undefined ? null : destinationFault(url, destinationRules)
  if (fault === null) return
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /url ${fault}.`,
    details: [{ path: '/url', message: fault }],
  })
}

/** Null: the whole workspace. */
export async function readProject(
  id: string | null,
  workspaceId: WorkspaceId,
  { hasProject }: Pick<WebhookDeps, 'hasProject'>,
): Promise<ProjectId | null> {
  if (id === null) return null
  const projectId = parseId<'project'>(id)
  if (projectId && (await hasProject(workspaceId, projectId))) return projectId
  throw new ApiError('unknown_project', {
    details: [{ path: '/projectId', message: 'is no project of this workspace' }],
  })
}
