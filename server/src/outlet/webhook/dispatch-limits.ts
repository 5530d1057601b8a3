import { OPEN_PER_WEBHOOK_MAX } from './delivery-store.ts'

const DAY_MS = 86_400_000

/** What a dispatcher does at most, and how often. */
export const DISPATCH_LIMITS = {
  /** So long after its last look the dispatcher looks again by itself. */
  pollMs: 150,
  /** How old the list of workspaces with webhooks may be. */
  watchMs: 1_000,
  /** Events of this time share a statement. */
  gatherMs: 5,
  /** Longer than an attempt may take, with the wait before it and the write after it. */
  leaseMs: 60_000,
  /** A delivery that was ready for so long is given back, while its lease still holds. */
  readyMsMax: 30_000,
  webhooksPerTurnMax: 256,
  /** A turn ends after this time, so that webhooks of other companies with new events don't wait. */
  turnMsMax: 200,
  statementsAtOnceMax: 4,
  eventsPerFanOutMax: 256,
  /** Deliveries that nothing can send yet are created this seldom. The ledger keeps the events. */
  idleFanOutMs: 1_000,
  /** More webhooks of one company share this number per `idleFanOutMs`. */
  idleFanOutsPerCompanyMax: 16,
  /** All webhooks of one company share this number of deliveries per `idleFanOutMs`. */
  idleDeliveriesPerCompanyMax: 1_024,
  openPerWebhookMax: OPEN_PER_WEBHOOK_MAX,
  /** On this node, being sent or ready; of one company, at most a quarter. See `HeldLimits`. */
  heldMax: 2_048,
  heldPerCompanyMax: 512,
  firstHeldMax: 8,
  heldBytesMax: 32 * 1_024 * 1_024,
  heldBytesPerCompanyMax: 8 * 1_024 * 1_024,
  firstHeldBytesMax: 1_024 * 1_024,
  heldBytesHardMax: 48 * 1_024 * 1_024,
  endedPerStatementMax: 1_000,
  /** No success for so long, while attempts failed, disables a webhook. */
  failingMsMax: 5 * DAY_MS,
  /** What is on its way when the service stops gets so long. */
  stopMsMax: 3_000,
} as const

export type DispatchLimits = Record<keyof typeof DISPATCH_LIMITS, number>
