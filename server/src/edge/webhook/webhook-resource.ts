import { ApiError } from '../../errors.ts'
import type { DeliveryId } from '../../outlet/webhook/delivery.ts'
import { findDelivery } from '../../outlet/webhook/delivery-store.ts'
import type { DestinationRules } from '../../outlet/webhook/destination.ts'
import { findWebhook, type WebhookWithSecrets } from '../../outlet/webhook/webhook-store.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { SecretBox } from '../../platform/secret/secret-box.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { hasWorkspace } from '../../tenancy/workspace-store.ts'

export type WebhookDeps = {
  db: Queryable
  cursors: CursorCodec
  clock: Clock
  /** Created for the purpose `webhook`. */
  box: SecretBox
  destinationRules: DestinationRules
  /** Signals that there may be deliveries to send or to end. */
  wakeDispatcher: () => void
}

/*
 * Finds resources by an id in the path, within the caller's company. Another company's id, an unknown id and
 * an invalid id all get byte-identical 404s.
 */

export async function getWorkspace(
  { db }: Pick<WebhookDeps, 'db'>,
  { companyId }: Principal,
  id: string,
): Promise<WorkspaceId> {
  const workspaceId = parseId<'workspace'>(id)
  if (workspaceId && (await hasWorkspace(db, { companyId, workspaceId }))) return workspaceId
  throw new ApiError('not_found')
}

export async function getWebhook(
  { db }: Pick<WebhookDeps, 'db'>,
  { companyId }: Principal,
  id: string,
): Promise<WebhookWithSecrets> {
  const webhookId = parseId<'webhook'>(id)
  const webhook = webhookId && (await findWebhook(db, { companyId, webhookId }))
  if (!webhook) throw new ApiError('not_found')
  return webhook
}

export async function getDelivery(
  deps: Pick<WebhookDeps, 'db'>,
  principal: Principal,
  { webhookId, deliveryId }: { webhookId: string; deliveryId: string },
): Promise<{ webhook: WebhookWithSecrets; delivery: StoredDelivery }> {
  const webhook = await getWebhook(deps, principal, webhookId)
  const id: DeliveryId | null = parseId(deliveryId)
  const place = { workspaceId: webhook.workspaceId, webhookId: webhook.id }
  const delivery = id && (await findDelivery(deps.db, { ...place, deliveryId: id }))
  if (!delivery) throw new ApiError('not_found')
  return { webhook, delivery }
}

type StoredDelivery = NonNullable<Awaited<ReturnType<typeof findDelivery>>>
