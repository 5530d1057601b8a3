import type { Static } from 'typebox'
import {
  type Delivery,
  type DeliveryPosition,
  findScanEnd,
  isScanned,
  listDeliveries,
} from '../../outlet/webhook/delivery/delivery-store.ts'
import type { Webhook } from '../../outlet/webhook/webhook.ts'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { UserId } from '../../platform/id.ts'
import type { DeliveryQuery } from '../schema/webhook.ts'
import { deliveryRecord } from './webhook-record.ts'
import type { WebhookDeps } from './webhook-deps.ts'

const LIMIT_DEFAULT = 50

/** How long one request can scan for deliveries with a status. */
const SCAN_MS_MAX = 500

/**
 * Returns a page of a webhook's deliveries. With a status, it can have fewer than `limit` or none although
 * more follow, because a scan reads a bounded number of deliveries.
 */
export async function readDeliveryPage(
  { db, cursors }: Pick<WebhookDeps, 'db' | 'cursors'>,
  webhook: Webhook,
  query: Query,
  {
    reader = null,
    monotonic = monotonicClock,
  }: {
    /** The member who reads it, if cursors belong to a member and not to the company. */
    reader?: UserId | null
    monotonic?: MonotonicClock
  } = {},
) {
  const binding = `${bindingOf(webhook, query)}${reader === null ? '' : `/${reader}`}`
  const { limit = LIMIT_DEFAULT, status = null } = query
  const { workspaceId, id: webhookId } = webhook
  const endMs = monotonic() + SCAN_MS_MAX
  const deliveries: Delivery[] = []
  let position = positionOf(query, binding, cursors)
  let next: number | null
  do {
    const range = { workspaceId, webhookId, position }
    next = isScanned(status) ? await findScanEnd(db, range) : null
    // One more than requested shows whether there is another page.
    const left = limit + 1 - deliveries.length
    deliveries.push(...(await listDeliveries(db, { ...range, status, end: next, limit: left })))
    if (deliveries.length > limit) next = deliveries[limit - 1]?.sequence ?? null
    else if (next !== null) position = 'after' in position ? { after: next } : { before: next }
  } while (next !== null && deliveries.length <= limit && monotonic() < endMs)
  return {
    data: deliveries.slice(0, limit).map(deliveryRecord),
    nextCursor: next === null ? null : cursors.encode(String(next), binding),
  }
}

type Query = Static<typeof DeliveryQuery>

/** What a cursor belongs to: tenant, webhook, filters and order, but not the page size. */
function bindingOf({ companyId, id }: Webhook, { status, afterSequence }: Query): string {
  const order = afterSequence === undefined ? 'newest' : `after ${afterSequence}`
  return `deliveries/${companyId}/${id}/${status ?? 'all'}/${order}`
}

function positionOf(
  { cursor, afterSequence }: Query,
  binding: string,
  cursors: CursorCodec,
): DeliveryPosition {
  const position = cursors.read(cursor, binding)
  const reached = position === null ? null : Number(position)
  return afterSequence === undefined ? { before: reached } : { after: reached ?? afterSequence }
}
