import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SealedEvent } from '../../../ledger/event.ts'
import { newId } from '../../../platform/id.ts'
import { Secret } from '../../../platform/secret/secret.ts'
import { SecretBox } from '../../../platform/secret/secret-box.ts'
import { runAttempt, openSigner, readyDelivery } from './attempt.ts'
import type { AttemptOutcome, LeasedDelivery } from '../delivery/delivery.ts'
import type { WebhookWork } from './delivery-queue-store.ts'
import type { OutboundRequest } from '../send/sender.ts'
import { createSigner } from '../secret/signature.ts'
import { webhookBody } from '../send/webhook-body.ts'

const STARTED_AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const TOOK_MS = 120
const ENDED_AT_MS = STARTED_AT_MS + TOOK_MS
const URL = 'https://receiver.example/hook'
const LEASE = { token: newId(), until: new Date(STARTED_AT_MS + 60_000) }

const DELIVERY: LeasedDelivery = {
  id: newId(),
  webhookId: newId(),
  sequence: 7,
  attempt: 1,
  scheduleFrom: 0,
  eventSeq: 12,
  eventId: newId(),
  createdAt: new Date(STARTED_AT_MS - 1_000),
}

const WORK: WebhookWork = {
  workspaceId: newId(),
  webhookId: DELIVERY.webhookId,
  companyId: newId(),
  projectId: null,
  filter: null,
  projectSinceSeq: 0,
  pastProjectId: null,
  pastFilter: null,
  url: URL,
  headers: null,
  isEnabled: true,
  disabledReason: null,
  secrets: { current: Buffer.alloc(0), next: null, nextAt: null },
  seenSeq: 12,
  headSeq: 12,
  openCount: 1,
  failureCount: 0,
  hasDue: true,
  companyWorkCount: 1,
}

const EVENT: SealedEvent = {
  id: DELIVERY.eventId,
  seq: 12,
  companyId: WORK.companyId,
  workspaceId: WORK.workspaceId,
  projectId: null,
  timestampMs: STARTED_AT_MS,
  receivedAtMs: STARTED_AT_MS,
  category: 'auth',
  action: 'user.login',
  traceId: 'ab'.repeat(16),
  actor: '{"id":"u1"}',
  metadata: null,
  resource: null,
  hash: '1'.repeat(64),
  prevHash: '0'.repeat(64),
  sealed: '{}',
  salts: '{}',
}

const ANY_ATTEMPT = {
  body: '{}',
  deliveryId: DELIVERY.id,
  attempt: 1,
  sequence: 1,
  timestampSeconds: 1,
  traceId: null,
  isTest: false,
}

const signer = createSigner({ current: 'correct horse', next: null })
const ACCEPTED: AttemptOutcome = { kind: 'accepted', responseStatus: 204, excerpt: 'fine' }
const refused = (responseStatus: number, retryAfterMs: number | null = null): AttemptOutcome => ({
  kind: 'refused',
  responseStatus,
  errorClass: responseStatus < 400 ? 'redirect' : 'http',
  retryAfterMs,
  excerpt: 'no',
})

/** Makes one attempt with this outcome. The clock advances by its duration. */
async function attempt(
  outcome: AttemptOutcome,
  {
    delivery = {},
    event = EVENT,
    isSigned = true,
    extraHeaders = {},
  }: {
    delivery?: Partial<LeasedDelivery>
    event?: SealedEvent | null
    isSigned?: boolean
    extraHeaders?: Record<string, string> | null
  } = {},
) {
  const sent: OutboundRequest[] = []
  let charges = 0
  let nowMs = STARTED_AT_MS
  const leased = { delivery: { ...DELIVERY, ...delivery }, event }
  const ready = readyDelivery(leased, WORK, { signer: isSigned ? signer : null, extraHeaders })
  const result = await runAttempt(
    { ...ready, work: WORK, lease: LEASE },
    {
      sender: {
        send: async (sending) => {
          sent.push(sending)
          nowMs += TOOK_MS
          return { outcome, durationMs: TOOK_MS }
        },
      },
      clock: () => nowMs,
      random: () => 0,
      charge: (work) => {
        charges += 1
        return work()
      },
    },
  )
  return { ...result, sent, chargeCount: () => charges }
}

test('an accepted attempt completes the delivery and stores the response', async () => {
  const { settlement, outcome } = await attempt(ACCEPTED)
  assert.equal(outcome, ACCEPTED)
  assert.deepEqual(settlement, {
    workspaceId: WORK.workspaceId,
    webhookId: WORK.webhookId,
    deliveryId: DELIVERY.id,
    sequence: DELIVERY.sequence,
    lease: LEASE.token,
    status: 'SUCCEEDED',
    dueAt: new Date(ENDED_AT_MS),
    endedAt: new Date(ENDED_AT_MS),
    record: {
      attempt: 1,
      url: URL,
      startedAt: '2026-01-02T03:04:05.678Z',
      durationMs: TOOK_MS,
      responseStatus: 204,
      errorClass: null,
      message: null,
      excerpt: 'fine',
    },
  })
})

test('a request is signed and identifies the delivery and the attempt', async () => {
  const { sent } = await attempt(ACCEPTED, { delivery: { attempt: 3 } })
  assert.equal(sent.length, 1)
  assert.equal(sent[0]?.url, URL)
  assert.equal(sent[0]?.body, webhookBody(EVENT))
  assert.deepEqual(
    sent[0]?.headers,
    signer({
      body: webhookBody(EVENT),
      deliveryId: DELIVERY.id,
      attempt: 3,
      sequence: 7,
      timestampSeconds: Math.floor(STARTED_AT_MS / 1_000),
      traceId: EVENT.traceId,
      isTest: false,
    }),
  )
})

test('a failed attempt is retried on schedule, from the time it ended', async () => {
  const waitsSeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
  for (const [index, waitSeconds] of waitsSeconds.entries()) {
    const { settlement } = await attempt(refused(500), { delivery: { attempt: index + 1 } })
    assert.equal(settlement.status, 'RETRY_SCHEDULED')
    assert.equal(settlement.dueAt.getTime(), ENDED_AT_MS + waitSeconds * 1_000)
    assert.equal(settlement.record.attempt, index + 1)
    assert.equal(settlement.record.message, 'The receiver responded with 500.')
  }
})

test('the eighth failed attempt is the last', async () => {
  for (const attemptNumber of [8, 9]) {
    const { settlement } = await attempt(refused(500), { delivery: { attempt: attemptNumber } })
    assert.equal(settlement.status, 'FAILED')
    assert.equal(settlement.dueAt.getTime(), ENDED_AT_MS)
  }
})

test('a redelivery starts a new schedule but continues counting attempts', async () => {
  const first = await attempt(refused(500), { delivery: { attempt: 9, scheduleFrom: 8 } })
  assert.equal(first.settlement.status, 'RETRY_SCHEDULED')
  assert.equal(first.settlement.dueAt.getTime(), ENDED_AT_MS + 5_000)
  assert.equal(first.settlement.record.attempt, 9)
  assert.equal(first.sent[0]?.headers['x-service-attempt'], '9')
  const last = await attempt(refused(500), { delivery: { attempt: 16, scheduleFrom: 8 } })
  assert.equal(last.settlement.status, 'FAILED')
})

test('honors a longer pause requested by the receiver, up to twice the planned one', async () => {
  for (const [retryAfterMs, waitMs] of [
    [1_000, 5_000],
    [8_000, 8_000],
    [3_600_000, 10_000],
  ] as const) {
    const { settlement } = await attempt(refused(503, retryAfterMs))
    assert.equal(settlement.dueAt.getTime(), ENDED_AT_MS + waitMs)
  }
})

test('does not retry after a 410, even at the first attempt', async () => {
  const { settlement } = await attempt(refused(410))
  assert.equal(settlement.status, 'FAILED')
  assert.equal(settlement.record.responseStatus, 410)
})

test('classifies redirects and unreachable receivers as failures', async () => {
  const moved = await attempt(refused(301))
  assert.equal(moved.settlement.status, 'RETRY_SCHEDULED')
  assert.equal(moved.settlement.record.errorClass, 'redirect')
  const message = `${'x'.repeat(10)}\uD83D…`
  const away = await attempt({ kind: 'unreachable', errorClass: 'tls', message })
  assert.equal(away.settlement.status, 'RETRY_SCHEDULED')
  assert.equal(away.settlement.record.errorClass, 'tls')
  assert.equal(away.settlement.record.responseStatus, null)
  assert.equal(away.settlement.record.excerpt, null)
  // PostgreSQL can't store half a surrogate pair.
  assert.equal(away.settlement.record.message, `${'x'.repeat(10)}\uFFFD…`)
})

test('a test delivery has its own body, the same at every attempt, and is marked', async () => {
  const first = await attempt(ACCEPTED, { delivery: { eventSeq: null }, event: null })
  const second = await attempt(ACCEPTED, { delivery: { eventSeq: null, attempt: 2 }, event: null })
  const [sent] = first.sent
  assert.equal(sent?.body, second.sent[0]?.body)
  assert.equal(sent?.headers['x-service-test'], 'true')
  assert.equal(sent?.headers['x-trace-id'], undefined)
  const body: Record<string, unknown> = JSON.parse(String(sent?.body))
  assert.equal(body['id'], DELIVERY.id)
  assert.equal(body['action'], 'webhook.test')
  assert.equal(body['workspaceId'], WORK.workspaceId)
  assert.equal(body['timestamp'], DELIVERY.createdAt.toISOString())
  assert.equal(first.settlement.status, 'SUCCEEDED')
})

test('does not send an event that is no longer hot, and fails its delivery with the reason', async () => {
  const { settlement, outcome, sent } = await attempt(ACCEPTED, { event: null })
  assert.deepEqual(sent, [])
  assert.equal(outcome, null)
  assert.equal(settlement.status, 'FAILED')
  assert.equal(settlement.record.errorClass, null)
  assert.match(settlement.record.message ?? '', /event is archived/)
  assert.equal(settlement.dueAt.getTime(), STARTED_AT_MS)
})

test('never sends unsigned: if the secret cannot be read, the delivery is retried on schedule', async () => {
  const { settlement, sent } = await attempt(ACCEPTED, { isSigned: false })
  assert.deepEqual(sent, [])
  assert.equal(settlement.status, 'RETRY_SCHEDULED')
  assert.equal(settlement.dueAt.getTime(), STARTED_AT_MS + 5_000)
  assert.match(settlement.record.message ?? '', /secret can't be decrypted/)
  const last = await attempt(ACCEPTED, { isSigned: false, delivery: { attempt: 8 } })
  assert.deepEqual(last.sent, [])
  assert.equal(last.settlement.status, 'FAILED')
})

test('if the key of the old secret is lost, only the new secret signs', () => {
  const [lost, box] = [1, 2].map((byte) => new SecretBox(new Secret(Buffer.alloc(32, byte)), 'w'))
  assert(lost && box)
  const { webhookId } = WORK
  const secrets = {
    current: lost.seal('the old secret', webhookId),
    next: box.seal('the new secret', webhookId),
    nextAt: new Date(STARTED_AT_MS),
  }
  const opened = openSigner(secrets, webhookId, { box, nowMs: STARTED_AT_MS - 1 })
  const alone = createSigner({ current: 'the new secret', next: null })
  assert.deepEqual(opened?.(ANY_ATTEMPT), alone(ANY_ATTEMPT))
})

test('both secrets sign during a rotation, and only the new one afterwards', () => {
  const box = new SecretBox(new Secret(Buffer.alloc(32, 1)), 'webhook')
  const { webhookId } = WORK
  const secrets = {
    current: box.seal('the old secret', webhookId),
    next: box.seal('the new secret', webhookId),
    nextAt: new Date(STARTED_AT_MS),
  }
  const headersAt = (nowMs: number) => openSigner(secrets, webhookId, { box, nowMs })?.(ANY_ATTEMPT)
  const before = createSigner({ current: 'the old secret', next: 'the new secret' })
  const after = createSigner({ current: 'the new secret', next: null })
  assert.deepEqual(headersAt(STARTED_AT_MS - 1), before(ANY_ATTEMPT))
  assert.deepEqual(headersAt(STARTED_AT_MS), after(ANY_ATTEMPT))
  const otherBox = new SecretBox(new Secret(Buffer.alloc(32, 2)), 'webhook')
  assert.equal(openSigner(secrets, webhookId, { box: otherBox, nowMs: STARTED_AT_MS }), null)
})

test("masking a response is charged to the delivery's company", async () => {
  const { sent, chargeCount } = await attempt(ACCEPTED, { extraHeaders: { 'x-key': 'hush-hush' } })
  assert.equal(chargeCount(), 0)
  assert.equal(sent[0]?.hide?.('no hush-hush', { isCut: false }), 'no ***')
  assert.equal(chargeCount(), 1)
})
