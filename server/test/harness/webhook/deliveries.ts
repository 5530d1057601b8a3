import assert from 'node:assert/strict'
import type { DeliveryStatus, WebhookId } from '../../../src/outlet/webhook/delivery/delivery.ts'
import type { Settlement } from '../../../src/outlet/webhook/dispatch/settlement.ts'
import { assertId, type WorkspaceId } from '../../../src/platform/id.ts'
import { query } from '../database/engine.ts'
import { eventually } from '../timing/eventually.ts'
import type { ReceivedRequest } from './receiver.ts'
import type { TestResponse, TestApp } from '../app/start-app.ts'
import { type DeliveryRow, readDeliveries } from './webhooks.ts'

const EVENTS_PER_CALL = 500

/** Stores this many events in as few calls as possible. Returns their ids in chain order. */
export async function sendEvents(
  annals: Pick<TestApp, 'call'>,
  key: string,
  count: number,
  change: Record<string, unknown> = {},
): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < count) {
    const events = Array.from({ length: Math.min(EVENTS_PER_CALL, count - ids.length) }, () => ({
      category: 'billing',
      action: 'invoice.paid',
      ...change,
    }))
    const response: TestResponse = await annals.call('POST', '/v1/events/batch', {
      key,
      body: { events },
    })
    assert.equal(response.status, 200, response.text)
    for (const { id } of response.json.results) ids.push(String(id))
  }
  return ids
}

/** The settlement of an attempt that the receiver accepted. */
export function acceptedSettlement(
  { id, sequence }: Pick<DeliveryRow, 'id' | 'sequence'>,
  webhook: { workspaceId: WorkspaceId; webhookId: WebhookId },
  { lease, now }: { lease: string; now: Date },
): Settlement {
  return {
    ...webhook,
    deliveryId: assertId(id),
    sequence,
    lease,
    status: 'SUCCEEDED',
    dueAt: now,
    endedAt: now,
    record: {
      attempt: 1,
      url: 'http://127.0.0.1:1/',
      startedAt: now.toISOString(),
      durationMs: 1,
      responseStatus: 200,
      errorClass: null,
      message: null,
      excerpt: '',
    },
  }
}

/** The deliveries of a webhook, once there are this many and each has one of the given statuses. */
export async function waitForDeliveries(
  annals: TestApp,
  webhookId: WebhookId,
  count: number,
  ...statuses: DeliveryStatus[]
): Promise<DeliveryRow[]> {
  return await eventually(
    async () => {
      const rows = await readDeliveries(annals, webhookId)
      const counts = countBy(rows, ({ status }) => status)
      assert.equal(rows.length, count, JSON.stringify(counts))
      const others = Object.keys(counts).filter((name) => !statuses.some((one) => one === name))
      assert.deepEqual(others, [], JSON.stringify(counts))
      return rows
    },
    // Only a limit for the test: on a busy machine, two nodes need 25 s for 1,000.
    { timeoutMs: 60_000 + 60 * count },
  )
}

/** The columns of a webhook that deliveries change. */
export type WebhookState = {
  status: string
  disabledReason: string | null
  failureCount: number
  openCount: number
  lastSequence: number
  failingSinceMs: number | null
  restingUntilMs: number | null
  lastSuccessAtMs: number | null
  lastFailureAtMs: number | null
}

export async function readWebhookState(
  { database }: TestApp,
  webhookId: WebhookId,
): Promise<WebhookState> {
  const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
  const rows = await query(
    database.connection,
    `select status, disabled_reason as "disabledReason", failure_count::int as "failureCount",
            open_count::int as "openCount", last_sequence::int as "lastSequence",
            ${ms('failing_since')} as "failingSinceMs", ${ms('resting_until')} as "restingUntilMs",
            ${ms('last_success_at')} as "lastSuccessAtMs", ${ms('last_failure_at')} as "lastFailureAtMs"
       from webhook where id = '${webhookId}'`,
  )
  assert.equal(rows.length, 1)
  return JSON.parse(JSON.stringify(rows[0]))
}

export function deliveryIdOf({ headers }: ReceivedRequest): string {
  return headers['x-service-delivery-id'] ?? ''
}

export function eventIdOf({ body }: ReceivedRequest): string {
  const event: { id: string } = JSON.parse(body.toString())
  return event.id
}

export function sequenceOf({ headers }: ReceivedRequest): number {
  return Number(headers['x-service-sequence'])
}

export function countBy<T>(items: readonly T[], nameOf: (item: T) => string) {
  const counts: Record<string, number> = {}
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1
  return counts
}

/** 1, 2, 3 and so on: a sequence without gaps. */
export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}
