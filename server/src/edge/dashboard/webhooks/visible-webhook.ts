import { getDelivery } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { getWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import type { Webhook } from '../../../outlet/webhook/webhook.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Caller } from '../../../tenancy/caller.ts'
import { canSeeWorkspace, type Viewer } from '../../../tenancy/viewer.ts'
import { webhookRecord } from '../../webhook/webhook-record.ts'

/** Returns the webhook in a path if the member can see its workspace. */
export async function getVisibleWebhook(db: Queryable, viewer: Viewer, id: string) {
  return await getWebhook({ db }, readerOf(viewer), id)
}

export async function getVisibleDelivery(
  db: Queryable,
  viewer: Viewer,
  params: { webhookId: string; deliveryId: string },
) {
  return await getDelivery({ db }, readerOf(viewer), params)
}

function readerOf(viewer: Viewer): Pick<Caller, 'companyId' | 'canSeeWorkspace'> {
  return { companyId: viewer.companyId, canSeeWorkspace: (id) => canSeeWorkspace(viewer, id) }
}

export function dashboardWebhook(webhook: Webhook, nowMs: number) {
  return { ...webhookRecord(webhook, nowMs), workspaceId: webhook.workspaceId }
}
