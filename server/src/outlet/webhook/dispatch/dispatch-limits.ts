import { DAY_MS } from '../../../platform/time/time-units.ts'
import { OPEN_PER_WEBHOOK_MAX } from '../delivery/delivery-store.ts'

/** Limits and intervals of a dispatcher. */
export const DISPATCH_LIMITS = {
  /** How often the dispatcher polls if nothing wakes it. */
  pollMs: 150,
  /**
   * How often it polls while there are no webhooks, or while the only node has nothing to send. Then only changes
   * by a command, or by another node that starts, wait for a poll.
   */
  idlePollMs: 1_000,
  /** The maximum age of the list of workspaces with webhooks. Polls find events of other workspaces. */
  watchMs: 10_000,
  /** If more workspaces have work, all webhooks are searched for it. */
  workspacesSearchedMax: 1_000,
  /** How often all webhooks are checked for events. */
  checkAllMs: 30_000,
  /** How often they are checked while more than `workspacesSearchedMax` workspaces have work. */
  recountMs: 1_000,
  /** Events that arrive within this time share a statement. */
  gatherMs: 5,
  /** Longer than an attempt can take, including the wait before it and the write after it. */
  leaseMs: 60_000,
  /** A delivery that has been ready for this long is released, well before its lease expires. */
  readyMsMax: 30_000,
  /** How often the dispatcher checks that deliveries that are ready have the current target. */
  targetCheckMs: 500,
  webhooksPerRoundMax: 256,
  /** A round ends after this time, so that webhooks of other companies with new events don't wait. */
  roundMsMax: 200,
  statementsAtOnceMax: 4,
  eventsPerFanOutMax: 256,
  /** How often to create deliveries that can't be sent yet. Until then, their events wait in the ledger. */
  idleFanOutMs: 1_000,
  /** Per `idleFanOutMs`. If a company has more webhooks, they share this number. */
  idleFanOutsPerCompanyMax: 16,
  /** Per `idleFanOutMs`, shared by all webhooks of a company. */
  idleDeliveriesPerCompanyMax: 1_024,
  openPerWebhookMax: OPEN_PER_WEBHOOK_MAX,
  /**
   * Deliveries on this node that are ready or being sent. A company gets at most a quarter. See
   * `DeliveryBudgetLimits`.
   */
  heldMax: 2_048,
  heldPerCompanyMax: 512,
  firstHeldMax: 8,
  heldBytesMax: 32 * 1_024 * 1_024,
  heldBytesPerCompanyMax: 8 * 1_024 * 1_024,
  firstHeldBytesMax: 1_024 * 1_024,
  heldBytesHardMax: 48 * 1_024 * 1_024,
  endedPerStatementMax: 1_000,
  /** A webhook whose attempts fail for this long without a success is disabled. */
  failingMsMax: 5 * DAY_MS,
  /** On shutdown, deliveries that are being sent get this long to finish. */
  stopMsMax: 3_000,
} as const

export type DispatchLimits = Record<keyof typeof DISPATCH_LIMITS, number>

type CompanyWork = { companyWorkCount: number }

/** Longer for a company with many webhooks, so that its fan-outs without room have a maximum rate. */
export function idleFanOutMs(limits: DispatchLimits, { companyWorkCount }: CompanyWork): number {
  return limits.idleFanOutMs * Math.max(1, companyWorkCount / limits.idleFanOutsPerCompanyMax)
}

/** Smaller for a company with many webhooks, so that deliveries that only wait have a maximum rate too. */
export function idleFanOutCount(
  { eventsPerFanOutMax, idleDeliveriesPerCompanyMax, idleFanOutsPerCompanyMax }: DispatchLimits,
  { companyWorkCount }: CompanyWork,
): number {
  const fanOuts = Math.min(companyWorkCount, idleFanOutsPerCompanyMax)
  return Math.min(eventsPerFanOutMax, Math.ceil(idleDeliveriesPerCompanyMax / fanOuts))
}
