import type { Clock } from '../../../platform/time/clock.ts'
import type { Span, Tracer } from '../../../platform/otlp/tracer.ts'
import type { SecretBox } from '../../../platform/secret/secret-box.ts'
import { statusAfter } from './attempt-result.ts'
import type { AttemptOutcome, LeasedDelivery } from '../delivery/delivery.ts'
import type { Lease, LeasedWork, WebhookWork } from './delivery-queue-store.ts'
import { type ExtraHeaders, openHeaders } from '../send/extra-headers.ts'
import { maskValues } from '../send/mask-values.ts'
import { ATTEMPTS_MAX, nextAttemptAtMs } from './retry-schedule.ts'
import { secretsAt } from '../secret/rotation.ts'
import type { Sender } from '../send/sender.ts'
import type { AttemptRecord, Settlement } from './settlement.ts'
import { createSigner, type Signer } from '../secret/signature.ts'
import { testBody, webhookBody } from '../send/webhook-body.ts'
import type { SealedSecrets, Target } from '../webhook.ts'

/** What the service's secret key decrypts. A part is null if it can't be decrypted with this node's key. */
export type Credentials = { signer: Signer | null; extraHeaders: ExtraHeaders | null }

/** A delivery with everything needed to send it. The body is empty if its event is gone. */
export type ReadyDelivery = Credentials & {
  delivery: LeasedDelivery
  body: string
  traceId: string | null
}

export type AttemptDeps = {
  sender: Pick<Sender, 'send'>
  clock: Clock
  /** At least 0 and below 1. */
  random: () => number
  /** Runs work at the expense of the delivery's company. */
  charge: <T>(work: () => T) => T
  /** Null or missing without an OpenTelemetry endpoint. */
  tracer?: Tracer | null
}

/** Builds the same bytes for every attempt, from stored data. */
export function readyDelivery(
  { delivery, event }: LeasedWork,
  work: WebhookWork,
  credentials: Credentials,
): ReadyDelivery {
  const about = { delivery, ...credentials }
  if (event) return { ...about, body: webhookBody(event), traceId: event.traceId }
  if (delivery.eventSeq !== null) return { ...about, body: '', traceId: null }
  const { companyId, workspaceId, projectId } = work
  const createdAtMs = delivery.createdAt.getTime()
  const body = testBody({ deliveryId: delivery.id, companyId, workspaceId, projectId, createdAtMs })
  return { ...about, body, traceId: null }
}

export function openCredentials(
  { secrets, headers }: Target,
  webhookId: string,
  { box, nowMs }: { box: SecretBox; nowMs: number },
): Credentials {
  const signer = openSigner(secrets, webhookId, { box, nowMs })
  return { signer, extraHeaders: openHeaders(headers, webhookId, box) }
}

/**
 * The webhook's current signer, or null if its secret can't be decrypted with this service's key. If only the
 * new secret of a rotation can be decrypted, it signs alone, because the key of the old one is lost.
 */
export function openSigner(
  secrets: SealedSecrets,
  webhookId: string,
  { box, nowMs }: { box: SecretBox; nowMs: number },
): Signer | null {
  const sealed = secretsAt(secrets, nowMs)
  const current = box.open(sealed.current, webhookId)
  const next = sealed.next && box.open(sealed.next, webhookId)
  if (current !== null) return createSigner({ current, next })
  return next === null ? null : createSigner({ current: next, next: null })
}

/**
 * Sends once and returns what to record. The outcome is null if nothing could be sent. With `isCanceled`,
 * nothing was sent because the service is stopping, and nothing must be recorded.
 */
export async function runAttempt(
  {
    delivery,
    body,
    traceId,
    signer,
    extraHeaders,
    work,
    lease,
  }: ReadyDelivery & { work: WebhookWork; lease: Lease },
  { sender, clock, random, charge, tracer }: AttemptDeps,
): Promise<{ settlement: Settlement; outcome: AttemptOutcome | null; isCanceled?: true }> {
  const startedAtMs = clock()
  const base = { delivery, work, lease, startedAtMs }
  if (body === '') {
    const message = "The event is archived, so it can't be sent again."
    return unsent(base, { message, retryAtMs: null })
  }
  const attempt = delivery.attempt - delivery.scheduleFrom
  if (!signer || !extraHeaders) {
    // Another node may have the right key, or the operator may set it before the last retry.
    const message = signer
      ? "The webhook's headers can't be decrypted with this node's secret key. Set them again."
      : "The webhook's secret can't be decrypted with this node's secret key. Rotate the webhook's secret."
    const failed = { attempt, failedAtMs: startedAtMs, retryAfterMs: null, jitter: random }
    return unsent(base, { message, retryAtMs: nextAttemptAtMs(failed) })
  }
  const ownHeaders = signer({
    body,
    deliveryId: delivery.id,
    attempt: delivery.attempt,
    sequence: delivery.sequence,
    timestampSeconds: Math.floor(startedAtMs / 1_000),
    traceId,
    isTest: delivery.eventSeq === null,
  })
  const trace = tracer?.startAttempt('webhook attempt', { eventId: delivery.eventId, traceId })
  const { outcome, durationMs, ...rest } = await sender.send({
    url: work.url,
    headers: { ...extraHeaders, ...ownHeaders, ...(trace && { traceparent: trace.traceparent }) },
    body,
    hide: (excerpt, about) => charge(() => maskValues(excerpt, Object.values(extraHeaders), about)),
  })
  if (trace?.span && !rest.isCanceled) endSpan(trace.span, delivery, outcome)
  const record = recordOf(outcome, {
    attempt: delivery.attempt,
    url: work.url,
    startedAtMs,
    durationMs,
  })
  const status = statusAfter(outcome, { attemptsLeft: ATTEMPTS_MAX - attempt })
  const endedAtMs = clock()
  const retryAfterMs = outcome.kind === 'refused' ? outcome.retryAfterMs : null
  const retryAtMs =
    status === 'RETRY_SCHEDULED'
      ? nextAttemptAtMs({ attempt, failedAtMs: endedAtMs, retryAfterMs, jitter: random })
      : null
  const settlement = settlementOf(base, { status, record, endedAtMs, retryAtMs })
  return { settlement, outcome, ...rest }
}

/** Without the URL, the ids and the response, which belong to the tenant. */
function endSpan(span: Span, { attempt }: LeasedDelivery, outcome: AttemptOutcome): void {
  span.attributes['http.request.method'] = 'POST'
  if (attempt > 1) span.attributes['http.request.resend_count'] = attempt - 1
  if (outcome.kind !== 'unreachable') {
    span.attributes['http.response.status_code'] = outcome.responseStatus
  }
  if (outcome.kind !== 'accepted') span.fail(outcome.errorClass)
  span.end()
}

type Base = { delivery: LeasedDelivery; work: WebhookWork; lease: Lease; startedAtMs: number }

/** Records that nothing was sent. Without a retry time, the delivery has failed. */
function unsent(
  base: Base,
  { message, retryAtMs }: { message: string; retryAtMs: number | null },
): { settlement: Settlement; outcome: null } {
  const record: AttemptRecord = {
    attempt: base.delivery.attempt,
    url: base.work.url,
    startedAt: new Date(base.startedAtMs).toISOString(),
    durationMs: 0,
    responseStatus: null,
    errorClass: null,
    message,
    excerpt: null,
  }
  const status = retryAtMs === null ? 'FAILED' : 'RETRY_SCHEDULED'
  const end = { status, record, endedAtMs: base.startedAtMs, retryAtMs } as const
  return { settlement: settlementOf(base, end), outcome: null }
}

function settlementOf(
  { delivery, work, lease }: Base,
  {
    status,
    record,
    endedAtMs,
    retryAtMs,
  }: {
    status: Settlement['status']
    record: AttemptRecord
    endedAtMs: number
    retryAtMs: number | null
  },
): Settlement {
  return {
    workspaceId: work.workspaceId,
    webhookId: work.webhookId,
    deliveryId: delivery.id,
    sequence: delivery.sequence,
    lease: lease.token,
    status,
    dueAt: new Date(retryAtMs ?? endedAtMs),
    endedAt: new Date(endedAtMs),
    record,
  }
}

function recordOf(
  outcome: AttemptOutcome,
  about: { attempt: number; url: string; startedAtMs: number; durationMs: number },
): AttemptRecord {
  const common = {
    attempt: about.attempt,
    url: about.url,
    startedAt: new Date(about.startedAtMs).toISOString(),
    durationMs: Math.round(about.durationMs),
  }
  switch (outcome.kind) {
    case 'accepted': {
      const { responseStatus, excerpt } = outcome
      return { ...common, responseStatus, errorClass: null, message: null, excerpt }
    }
    case 'refused': {
      const { responseStatus, errorClass, excerpt } = outcome
      const message = `The receiver responded with ${responseStatus}.`
      return { ...common, responseStatus, errorClass, message, excerpt }
    }
    case 'unreachable': {
      const { errorClass } = outcome
      // It may quote a certificate, cut in the middle of a surrogate pair, which PostgreSQL rejects.
      const message = outcome.message.toWellFormed()
      return { ...common, responseStatus: null, errorClass, message, excerpt: null }
    }
    default:
      return outcome satisfies never
  }
}
