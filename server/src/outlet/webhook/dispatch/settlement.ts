import type { WorkspaceId } from '../../../platform/id.ts'
import type { StatusAfterAttempt } from './attempt-result.ts'
import type { DeliveryId, ErrorClass, WebhookId } from '../delivery/delivery.ts'

/** One attempt as stored with its delivery. */
export type AttemptRecord = {
  attempt: number
  url: string
  startedAt: string
  durationMs: number
  responseStatus: number | null
  errorClass: ErrorClass | null
  /** A sentence about what went wrong. Null after success. */
  message: string | null
  /** The beginning of the response. Null if there was none. */
  excerpt: string | null
}

/** The result of an attempt, to be stored. It changes the delivery only if the lease is still ours. */
export type Settlement = {
  workspaceId: WorkspaceId
  webhookId: WebhookId
  deliveryId: DeliveryId
  sequence: number
  lease: string
  status: StatusAfterAttempt
  /** When to retry. For a final status, when the attempt ended. */
  dueAt: Date
  endedAt: Date
  record: AttemptRecord
}
