import type { EventId } from '../../ledger/event.ts'
import type { Id } from '../../platform/id.ts'

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
 * The whole machine. FAILED without SENDING: the webhook was disabled, or its event is gone. SENDING
 * again: the lease of a sender that died ran out; PENDING again: it gave the lease back. From a final status only a person's redelivery
 * leads back.
 */
export const NEXT: Record<DeliveryStatus, readonly DeliveryStatus[]> = {
  PENDING: ['SENDING', 'FAILED'],
  SENDING: ['SUCCEEDED', 'RETRY_SCHEDULED', 'FAILED', 'SENDING', 'PENDING'],
  RETRY_SCHEDULED: ['SENDING', 'FAILED', 'PENDING'],
  SUCCEEDED: ['PENDING'],
  FAILED: ['PENDING'],
}

/** Still to be sent, or being sent. */
export const OPEN_STATUSES = ['PENDING', 'SENDING', 'RETRY_SCHEDULED'] as const

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

/** What became of one attempt. The excerpt is the beginning of the receiver's answer. */
export type AttemptOutcome =
  | { kind: 'accepted'; responseStatus: number; excerpt: string }
  | {
      kind: 'refused'
      responseStatus: number
      errorClass: 'http' | 'redirect'
      /** As the receiver asks for it; null when it does not. */
      retryAfterMs: number | null
      excerpt: string
    }
  | {
      kind: 'unreachable'
      errorClass: Exclude<ErrorClass, 'http' | 'redirect'>
      /** For the person who looks for the reason; never a stack, never an address of ours. */
      message: string
    }

/** A delivery whose lease this process holds: what it takes to send one. */
export type LeasedDelivery = {
  id: DeliveryId
  webhookId: WebhookId
  /** The place among this webhook's deliveries, from 1, without gaps. */
  sequence: number
  /** The attempt that the lease is for, from 1. */
  attempt: number
  /** The attempt after which the schedule of retries began: a redelivery starts it anew. */
  scheduleFrom: number
  /** Null: a test, which has no event in the ledger. */
  eventSeq: number | null
  eventId: EventId
  createdAt: Date
}
