import { ApiError } from '../../../errors.ts'
import type { DeliveryId } from '../../../outlet/webhook/delivery.ts'
import { findDelivery } from '../../../outlet/webhook/delivery-store.ts'
import { findWebhook, type WebhookWithSecrets } from '../../../outlet/webhook/webhook-store.ts'
import type { Webhook } from '../../../outlet/webhook/webhook.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { canSeeWorkspace, type Viewer } from '../../../tenancy/viewer.ts'
import { webhookRecord } from '../../webhook/webhook-record.ts'

/** Returns the webhook in a path if the member can see its workspace. */
export async function getVisibleWebhook(
  db: Queryable,
  viewer: Viewer,
  id: string,
): Promise<WebhookWithSecrets> {
  const webhookId = parseId<'webhook'>(id)
  const webhook = webhookId && (await findWebhook(db, { companyId: viewer.companyId, webhookId }))
  if (!webhook || !canSeeWorkspace(viewer, webhook.workspaceId)) throw new ApiError('not_found')
  return webhook
}

export async function getVisibleDelivery(
  db: Queryable,
  viewer: Viewer,
  params: { webhookId: string; deliveryId: string },
) {
  const webhook = await getVisibleWebhook(db, viewer, params.webhookId)
  const deliveryId: DeliveryId | null = parseId(params.deliveryId)
  const place = { workspaceId: webhook.workspaceId, webhookId: webhook.id }
  const delivery = deliveryId && (await findDelivery(db, { ...place, deliveryId }))
  if (!delivery) throw new ApiError('not_found')
  return { webhook, delivery }
}

export function dashboardWebhook(webhook: Webhook, nowMs: number) {
  return { ...webhookRecord(webhook, nowMs), workspaceId: webhook.workspaceId }
}

/** The webhook as the resource of an audit entry. */
export function webhookResource({ id }: Pick<Webhook, 'id'>) {
  return { type: 'webhook', id }
}
