import type { EventId } from '../../../ledger/event.ts'
import type { Id } from '../../../platform/id.ts'

export type WebhookId = Id<'webhook'>
export type DeliveryId = Id<'delivery'>

export const DELIVERY_STATUSES = [
  'PENDING',
  'SENDING',
  'SUCCEEDED',
  'FAILED',
  'RETRY_SCHEDULED',
] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/**
 * The state machine. A delivery fails without SENDING if its webhook is disabled. From SENDING it goes to
 * SENDING again if its lease expires because the sender died, and to PENDING if the sender releases the
 * lease. A redelivery moves it to PENDING, and is the only way out of a final status.
 */
export const DELIVERY_TRANSITIONS: Record<DeliveryStatus, readonly DeliveryStatus[]> = {
  PENDING: ['SENDING', 'FAILED'],
  SENDING: ['SUCCEEDED', 'RETRY_SCHEDULED', 'FAILED', 'SENDING', 'PENDING'],
  RETRY_SCHEDULED: ['SENDING', 'FAILED', 'PENDING'],
  SUCCEEDED: ['PENDING'],
  FAILED: ['PENDING'],
}

/** Why an attempt failed. `http`: the receiver answered, but not with success. */
export const ERROR_CLASSES = [
  'dns',
  'connect',
  'tls',
  'timeout',
  'reset',
  'redirect',
  'blocked_address',
  'http',
] as const
export type ErrorClass = (typeof ERROR_CLASSES)[number]

/** The outcome of one attempt. The excerpt is the beginning of the receiver's response. */
export type AttemptOutcome =
  | { kind: 'accepted'; responseStatus: number; excerpt: string }
  | {
      kind: 'refused'
      responseStatus: number
      errorClass: 'http' | 'redirect'
      /** From the receiver's `Retry-After`, or null if it sent none. */
      retryAfterMs: number | null
      excerpt: string
    }
  | {
      kind: 'unreachable'
      errorClass: Exclude<ErrorClass, 'http' | 'redirect'>
      /** Shown to the webhook's owner. Never includes a stack trace or an internal address. */
      message: string
    }

/** A delivery that this process has leased, with what it needs to send it. */
export type LeasedDelivery = {
  id: DeliveryId
  webhookId: WebhookId
  /** The position among this webhook's deliveries, counted from 1 without gaps. */
  sequence: number
  /** The attempt that the lease is for, counted from 1. */
  attempt: number
  /** The attempt after which the retry schedule started. A redelivery restarts it. */
  scheduleFrom: number
  /** Null for a test, which has no event in the ledger. */
  eventSeq: number | null
  eventId: EventId
  createdAt: Date
}
