import type { Static } from 'typebox'
import { ApiError } from '../../errors.ts'
import { destinationFault } from '../../outlet/webhook/send/destination.ts'
import { type ExtraHeaders, headerFault } from '../../outlet/webhook/send/extra-headers.ts'
import type { TimeWindow } from '../../outlet/webhook/delivery/redeliver-window.ts'
import { DELIVERY_KEPT_MS } from '../../outlet/webhook/delivery/sweep-worker.ts'
import type { Webhook } from '../../outlet/webhook/webhook.ts'
import { jsonPointer } from '../../platform/json/json-fault.ts'
import { parseId, type ProjectId, type WorkspaceId } from '../../platform/id.ts'
import { parseRfc3339 } from '../../platform/time/rfc3339.ts'
import { hasProject } from '../../tenancy/workspace/workspace-store.ts'
import { readName } from '../name-input.ts'
import { refuseLargeFilter } from '../event/stored-size.ts'
import {
  OVERLAP_SECONDS_DEFAULT,
  type SecretRotation,
  type WebhookChange,
  type WebhookInput,
  type WindowInput,
} from '../schema/webhook.ts'
import type { WebhookDeps } from './webhook-deps.ts'

/** Room for 20 values of the maximum length in one field, or 80 of usual length. */
const FILTER_BYTES_MAX = 8_192

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

/** The fields of a new webhook that need more than the schema's checks. */
export function readWebhookInput(body: Static<typeof WebhookInput>) {
  refuseLargeFilter('/filter', body.filter ?? null, FILTER_BYTES_MAX)
  return { ...body, ...readNameAndHeaders(body) }
}

function readNameAndHeaders({ name, headers }: { name?: string | null; headers?: ExtraHeaders }) {
  refuseHeaders(headers)
  return {
    ...(name !== undefined && { name: name === null ? null : readName(name) }),
    ...(headers !== undefined && { headers }),
  }
}

/** The response names the header, but never contains its value. */
function refuseHeaders(headers: ExtraHeaders = {}): void {
  const fault = headerFault(headers)
  if (fault === null) return
  const path = jsonPointer(['headers', fault.name])
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: ${path} ${fault.message}.`,
    details: [{ path, message: fault.message }],
  })
}

/** The fields that a change sets. The project must belong to the webhook's workspace. */
export async function readWebhookChange(
  { url, events, projectId, filter, secretLabel, ...rest }: Static<typeof WebhookChange>,
  { workspaceId }: Pick<Webhook, 'workspaceId'>,
  deps: Pick<WebhookDeps, 'db'>,
) {
  refuseLargeFilter('/filter', filter ?? null, FILTER_BYTES_MAX)
  return {
    ...readNameAndHeaders(rest),
    ...(url !== undefined && { url }),
    ...(filter !== undefined && { filter }),
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
  if (!(fromMs < toMs)) throw invalidFromError('must be before to')
  if (fromMs < nowMs - DELIVERY_KEPT_MS) throw invalidFromError('must not be more than 30 days ago')
  return { fromMs, toMs }
}

function invalidFromError(message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /from ${message}.`,
    details: [{ path: '/from', message }],
  })
}
