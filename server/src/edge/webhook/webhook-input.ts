import type { Static } from 'typebox'
import { ApiError } from '../../errors.ts'
import { destinationFault } from '../../outlet/webhook/destination.ts'
import type { TimeWindow } from '../../outlet/webhook/redeliver-window.ts'
import { DELIVERY_KEPT_MS } from '../../outlet/webhook/sweep-worker.ts'
import type { Webhook } from '../../outlet/webhook/webhook.ts'
import { parseId, type ProjectId, type WorkspaceId } from '../../platform/id.ts'
import { parseRfc3339 } from '../../platform/time/rfc3339.ts'
import { hasProject } from '../../tenancy/workspace-store.ts'
import {
  OVERLAP_SECONDS_DEFAULT,
  type SecretRotation,
  type WebhookChange,
  type WindowInput,
} from '../schema/webhook.ts'
import type { WebhookDeps } from './webhook-deps.ts'

/** Only checks the text: no DNS lookup, no connection. */
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

/** Null means the whole workspace. */
export async function readProject(
  id: string | null,
  workspaceId: WorkspaceId,
  { db }: Pick<WebhookDeps, 'db'>,
): Promise<ProjectId | null> {
  if (id === null) return null
  const projectId = parseId<'project'>(id)
  if (projectId && (await hasProject(db, { workspaceId, projectId }))) return projectId
  throw new ApiError('unknown_project', {
    details: [{ path: '/projectId', message: 'is not a project of this workspace' }],
  })
}

/** The fields that a change sets. The project must belong to the webhook's workspace. */
export async function readWebhookChange(
  { url, events, projectId, secretLabel }: Static<typeof WebhookChange>,
  { workspaceId }: Pick<Webhook, 'workspaceId'>,
  deps: Pick<WebhookDeps, 'db'>,
) {
  return {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events }),
    ...(projectId !== undefined && { projectId: await readProject(projectId, workspaceId, deps) }),
    ...(secretLabel !== undefined && { secretLabel }),
  }
}

export function readRotation(body: Static<typeof SecretRotation>) {
  return { overlapSeconds: OVERLAP_SECONDS_DEFAULT, ...body }
}

/** After deliveries are deleted, those that succeeded can't be distinguished from missing ones. */
export function readWindow({ from, to }: Static<typeof WindowInput>, nowMs: number): TimeWindow {
  const fromMs = parseRfc3339(from) ?? Number.NaN
  const toMs = parseRfc3339(to) ?? Number.NaN
  if (!(fromMs < toMs)) throw badFrom('must be before to')
  if (fromMs < nowMs - DELIVERY_KEPT_MS) throw badFrom('must not be more than 30 days ago')
  return { fromMs, toMs }
}

function badFrom(message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /from ${message}.`,
    details: [{ path: '/from', message }],
  })
}
