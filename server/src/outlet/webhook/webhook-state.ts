import { HOUR_MS, MINUTE_MS } from '../../platform/time/time-units.ts'

export const HEALTH_STATES = ['HEALTHY', 'DEGRADED', 'FAILING', 'IDLE'] as const
export type HealthState = (typeof HEALTH_STATES)[number]

/** The deliveries created in a period, without those that wait for the result of their first attempt. */
export type DeliveryCounts = { succeeded: number; failed: number; retrying: number }

/** A webhook is failing if a delivery is overdue by more than this. */
export const OVERDUE_MS_MAX = HOUR_MS

/** docs/webhooks.md lists these limits. Rates below and delays above them count. */
const FAILING: Limits = { hourRateMin: 0.9, dayRateMin: 0.5, overdueMsMax: OVERDUE_MS_MAX }
const DEGRADED: Limits = { hourRateMin: 0.99, dayRateMin: 0.99, overdueMsMax: 5 * MINUTE_MS }

type Limits = { hourRateMin: number; dayRateMin: number; overdueMsMax: number }

type Results = {
  lastHour: DeliveryCounts
  lastDay: DeliveryCounts
  /** How long ago the oldest delivery that is due should have been sent. 0 if none is due. */
  overdueMs: number
}

/**
 * How well a webhook delivers. A delivery that waits for a retry counts as not delivered, so that a receiver
 * that rejects everything shows long before the last attempt.
 */
export function stateOf({ lastHour, lastDay, overdueMs }: Results): HealthState {
  const [hourRate, dayRate] = [rateOf(lastHour), rateOf(lastDay)]
  const isWorse = ({ hourRateMin, dayRateMin, overdueMsMax }: Limits) =>
    hourRate < hourRateMin || dayRate < dayRateMin || overdueMs > overdueMsMax
  if (isWorse(FAILING)) return 'FAILING'
  if (isWorse(DEGRADED)) return 'DEGRADED'
  return countOf(lastDay) === 0 ? 'IDLE' : 'HEALTHY'
}

function rateOf(counts: DeliveryCounts): number {
  const all = countOf(counts)
  return all === 0 ? 1 : counts.succeeded / all
}

function countOf({ succeeded, failed, retrying }: DeliveryCounts): number {
  return succeeded + failed + retrying
}
