import type { Delivery } from '../../outlet/webhook/delivery/delivery-store.ts'
import type { WindowResult } from '../../outlet/webhook/delivery/redeliver-window.ts'
import type { Webhook } from '../../outlet/webhook/webhook.ts'

/** Formats a webhook for a response. Lists each field, so that a secret can't slip in. */
export function webhookRecord(webhook: Webhook, nowMs: number) {
  const { nextSecretAt } = webhook
  const isRotating = nextSecretAt !== null && nextSecretAt.getTime() > nowMs
  return {
    id: webhook.id,
    name: webhook.name,
    url: webhook.url,
    status: webhook.status,
    events: webhook.events,
    projectId: webhook.projectId,
    filter: webhook.filter,
    filteredCount: webhook.filteredCount,
    headerNames: webhook.headerNames,
    secretLabel: webhook.secretLabel,
    disabledReason: webhook.disabledReason,
    nextSecretAt: isRotating ? nextSecretAt.toISOString() : null,
    lastSuccessAt: timeTextOf(webhook.lastSuccessAt),
    lastFailureAt: timeTextOf(webhook.lastFailureAt),
    failureCount: webhook.failureCount,
    createdAt: webhook.createdAt.toISOString(),
    updatedAt: webhook.updatedAt.toISOString(),
  }
}

/** The only response that contains the first secret. */
export function createdWebhook({ webhook, secret }: { webhook: Webhook; secret: string }) {
  const { id, name, url, status, events, projectId, filter, headerNames, secretLabel } = webhook
  return {
    id,
    name,
    url,
    status,
    events,
    projectId,
    filter,
    headerNames,
    secretLabel,
    secret,
    createdAt: webhook.createdAt.toISOString(),
  }
}

export function deliveryRecord(delivery: Delivery) {
  return {
    id: delivery.id,
    webhookId: delivery.webhookId,
    eventId: delivery.eventId,
    eventSeq: delivery.eventSeq,
    status: delivery.status,
    attempt: delivery.attempt,
    sequence: delivery.sequence,
    url: delivery.url,
    responseStatus: delivery.responseStatus,
    durationMs: delivery.durationMs,
    errorClass: delivery.errorClass,
    failureReason: delivery.failureReason,
    isTest: delivery.isTest,
    nextAttemptAt: timeTextOf(delivery.nextAttemptAt),
    createdAt: delivery.createdAt.toISOString(),
    updatedAt: delivery.updatedAt.toISOString(),
  }
}

export function windowRecord({ continueFrom, redelivered, made }: WindowResult) {
  return {
    redelivered,
    made,
    isComplete: continueFrom === null,
    continueFrom: timeTextOf(continueFrom),
  }
}

function timeTextOf(at: Date | null): string | null {
  return at?.toISOString() ?? null
}
