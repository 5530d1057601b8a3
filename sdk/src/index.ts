export { Annals } from './annals.ts'
export type { AnnalsOptions, CallOptions } from './client/connection.ts'
export {
  AnnalsApiError,
  AnnalsError,
  AnnalsNetworkError,
  AnnalsTimeoutError,
  type ErrorCode,
  type ErrorDetail,
} from './client/errors.ts'
export type { Page, Pages } from './client/pages.ts'
export type { RecorderQueue, Spool } from './recorder/queue.ts'
export type { Recorder, RecorderOptions, RecorderStats, RefusedEvent } from './recorder/recorder.ts'
export type { CreatedEvent, Events } from './resource/events.ts'
export type { Exports } from './resource/exports.ts'
export type { Feed, FeedOptions } from './resource/feed.ts'
export type { Keys } from './resource/keys.ts'
export type { Proofs } from './resource/proofs.ts'
export type * from './resource/types.ts'
export type { Webhooks } from './resource/webhooks.ts'
export type { Workspaces } from './resource/workspaces.ts'
export { GapDetector, type GapState, type SequenceRange } from './webhook/gap-detector.ts'
export type { Body } from './webhook/read-body.ts'
export {
  verifyWebhook,
  type VerifyOptions,
  type WebhookDelivery,
  type WebhookRequest,
  WebhookVerificationError,
} from './webhook/verify-webhook.ts'
