import type { Static } from 'typebox'
import { ApiError } from '../errors.ts'
import { listDeliveries } from '../outlet/webhook/delivery-store.ts'
import type { Webhook } from '../outlet/webhook/webhook.ts'
import type { CursorCodec } from '../platform/cursor.ts'
import type { UserId } from '../platform/id.ts'
import type { DeliveryQuery } from './schema/webhook.ts'
import { deliveryRecord } from './webhook-record.ts'
import type { WebhookDeps } from './webhook-resource.ts'

const LIMIT_DEFAULT = 50

/** A page of a webhook's deliveries, as it is answered. */
export async function readDeliveryPage(
  { db, cursors }: Pick<WebhookDeps, 'db' | 'cursors'>,
  webhook: Webhook,
  query: Static<typeof DeliveryQuery>,
  /** Who reads it, where a cursor belongs to a member and not to the company. */
  reader: UserId | null = null,
) {
  const binding = `${bindingOf(webhook, query)}${reader === null ? '' : `/${reader}`}`
  const limit = query.limit ?? LIMIT_DEFAULT
  const deliveries = await listDeliveries(db, {
    workspaceId: webhook.workspaceId,
    webhookId: webhook.id,
    status: query.status ?? null,
    place: placeOf(query, binding, cursors),
    // One more than asked for tells whether there is a further page.
    limit: limit + 1,
  })
  const hasMore = deliveries.length > limit
  if (hasMore) deliveries.pop()
  const last = deliveries.at(-1)
  return {
    data: deliveries.map(deliveryRecord),
    nextCursor: hasMore && last ? cursors.encode(String(last.sequence), binding) : null,
  }
}

type Query = Static<typeof DeliveryQuery>

/** What a cursor belongs to: tenant, webhook, filters and order, but not the page size. */
function bindingOf({ companyId, id }: Webhook, { status, afterSequence }: Query): string {
  const order = afterSequence === undefined ? 'newest' : `after ${afterSequence}`
  return `deliveries/${companyId}/${id}/${status ?? 'all'}/${order}`
}

function placeOf({ cursor, afterSequence }: Query, binding: string, cursors: CursorCodec) {
  const reached = cursor === undefined ? null : sequenceOf(cursors.decode(cursor, binding))
  return afterSequence === undefined ? { before: reached } : { after: reached ?? afterSequence }
}

function sequenceOf(text: string | null): number {
  if (text === null) throw new ApiError('invalid_cursor')
  return Number(text)
}
