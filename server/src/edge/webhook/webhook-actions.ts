import type { Static } from 'typebox'
import { ApiError } from '../../errors.ts'
import type { DeliveryId } from '../../outlet/webhook/delivery.ts'
import { insertTest, OPEN_PER_WEBHOOK_MAX, redeliver } from '../../outlet/webhook/delivery-store.ts'
import { finishRotation, rotate } from '../../outlet/webhook/rotation.ts'
import { newWebhookSecret } from '../../outlet/webhook/webhook-secret.ts'
import {
  insertWebhook,
  lockWebhook,
  updateSecrets,
  updateWebhookSettings,
} from '../../outlet/webhook/webhook-store.ts'
import { type Webhook, WEBHOOK_EVENTS } from '../../outlet/webhook/webhook.ts'
import { type CompanyId, newId, type ProjectId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import { PLAN_TERMS } from '../../tenancy/plans.ts'
import {
  OVERLAP_SECONDS_DEFAULT,
  type SecretRotation,
  type WebhookChange,
  type WebhookInput,
} from '../schema/webhook.ts'
import { webhookRecord } from './webhook-record.ts'
import type { WebhookDeps } from './webhook-resource.ts'

/*
 * Operations on a webhook, for keys and members alike. Each runs in the caller's transaction and returns the
 * response body.
 */

type ActionDeps = Pick<WebhookDeps, 'clock' | 'box'>

/**
 * A route's plan can be two seconds old. Under the lock it is current, so a downgrade disables every webhook
 * that was created or enabled before it.
 */
export async function refusePlanWithoutWebhooks(
  trx: Queryable,
  companyId: CompanyId,
): Promise<void> {
  const plan = await lockCompany(trx, companyId)
  if (plan === null || PLAN_TERMS[plan].hasWebhooks) return
  throw new ApiError('plan_required', {
    message: `This operation requires the PRO plan or higher. The company is on the ${plan} plan.`,
  })
}

/** The only response that contains the first secret. */
export async function addWebhook(
  trx: Queryable,
  { clock, box }: ActionDeps,
  place: { companyId: CompanyId; workspaceId: WorkspaceId; projectId: ProjectId | null },
  input: Static<typeof WebhookInput>,
) {
  await refusePlanWithoutWebhooks(trx, place.companyId)
  const nowMs = clock()
  const id = newId<'webhook'>(nowMs)
  const secret = input.customSecret ?? newWebhookSecret()
  const webhook = await insertWebhook(trx, {
    ...place,
    id,
    url: input.url,
    events: input.events ?? WEBHOOK_EVENTS,
    secret: box.seal(secret, id),
    secretLabel: input.secretLabel ?? null,
    now: new Date(nowMs),
  })
  return {
    id,
    url: webhook.url,
    status: webhook.status,
    events: [...webhook.events],
    projectId: webhook.projectId,
    secretLabel: webhook.secretLabel,
    secret,
    createdAt: webhook.createdAt.toISOString(),
  }
}

/** `projectId` must be the validated one. The input's may belong to another workspace. */
export async function changeWebhook(
  trx: Queryable,
  { clock }: Pick<ActionDeps, 'clock'>,
  webhook: Webhook,
  {
    url,
    events,
    projectId,
  }: Pick<Static<typeof WebhookChange>, 'url' | 'events'> & { projectId?: ProjectId | null },
) {
  const nowMs = clock()
  const changed = await updateWebhookSettings(trx, webhook, {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events }),
    ...(projectId !== undefined && { projectId }),
    now: new Date(nowMs),
  })
  if (!changed) throw new ApiError('not_found')
  return webhookRecord(changed, nowMs)
}

/** The only response that contains the new secret. */
export async function rotateSecret(
  trx: Queryable,
  { clock, box }: ActionDeps,
  { workspaceId, id }: Webhook,
  { customSecret, overlapSeconds = OVERLAP_SECONDS_DEFAULT }: Static<typeof SecretRotation>,
) {
  const secret = customSecret ?? newWebhookSecret()
  const nowMs = clock()
  const webhook = await lockWebhook(trx, { workspaceId, id })
  if (!webhook) throw new ApiError('not_found')
  const fresh = box.seal(secret, id)
  const secrets = rotate(webhook.secrets, fresh, { overlapMs: overlapSeconds * 1_000, nowMs })
  if (!secrets) throw overlapConflict(webhook.nextSecretAt)
  await updateSecrets(trx, webhook, { ...secrets, now: new Date(nowMs) })
  return { id, secret, nextSecretAt: secrets.nextAt?.toISOString() ?? null }
}

function overlapConflict(until: Date | null): ApiError {
  return new ApiError('conflict', {
    message: `A rotation is in progress until ${until?.toISOString()}. Finish it with finish-rotation, or replace both secrets by setting overlapSeconds to 0.`,
  })
}

/** Without a rotation, changes nothing and doesn't call `onChange`. */
export async function finishOverlap(
  trx: Queryable,
  { clock }: Pick<ActionDeps, 'clock'>,
  { workspaceId, id }: Webhook,
  onChange: () => void = () => {},
) {
  const webhook = await lockWebhook(trx, { workspaceId, id })
  if (!webhook) throw new ApiError('not_found')
  if (webhook.nextSecretAt !== null) {
    onChange()
    const secrets = finishRotation(webhook.secrets)
    await updateSecrets(trx, webhook, { ...secrets, now: new Date(clock()) })
  }
  return { id, nextSecretAt: null }
}

export async function sendTest(
  trx: Queryable,
  { clock }: Pick<ActionDeps, 'clock'>,
  webhook: Webhook,
) {
  const nowMs = clock()
  const id = newId<'delivery'>(nowMs)
  const { workspaceId, id: webhookId } = webhook
  const sequence = await insertTest(trx, { workspaceId, webhookId, id, now: new Date(nowMs) })
  if (sequence === null) {
    const current = await lockWebhook(trx, webhook)
    if (!current) throw new ApiError('not_found')
    refuseDisabled(current)
    throw new ApiError('conflict', {
      message: `This webhook has reached its limit of ${OPEN_PER_WEBHOOK_MAX} pending deliveries. Send the test after some of them have been delivered.`,
    })
  }
  return { deliveryId: id, sequence }
}

export async function resendDelivery(
  trx: Queryable,
  { clock }: Pick<ActionDeps, 'clock'>,
  webhook: Webhook,
  deliveryId: DeliveryId,
): Promise<void> {
  refuseDisabled(webhook)
  const { workspaceId, id: webhookId } = webhook
  const now = new Date(clock())
  if (await redeliver(trx, { workspaceId, webhookId, deliveryId, now })) return
  throw new ApiError('conflict', {
    message: "The delivery can't be resent. It is still pending, or its event is archived.",
  })
}

export function refuseDisabled({ status }: Webhook): void {
  if (status === 'DISABLED') throw disabledConflict()
}

function disabledConflict(): ApiError {
  return new ApiError('conflict', { message: 'The webhook is disabled. Enable it first.' })
}
