import { DAY_MS } from '../../platform/time/time-units.ts'

/** The input to the score. */
export type KeyCondition = {
  createdAt: Date
  expiresAt: Date | null
  /** Set if the key was replaced. */
  graceUntil: Date | null
  lastUsedAt: Date | null
  callsToday: number
  failuresToday: number
  companyHasAllowlist: boolean
}

type HealthDeduction = { points: number; reason: string }

/** With fewer calls, the failure rate is meaningless. */
const CALLS_TO_JUDGE_MIN = 20

/**
 * 100 minus the deductions, never below 0. docs/decisions/0008-key-health.md documents the deductions,
 * and the dashboard shows their reasons.
 */
export function healthOf(
  condition: KeyCondition,
  nowMs: number,
): { score: number; deductions: HealthDeduction[] } {
  const deductions = [
    ageDeduction(condition, nowMs),
    expiryDeduction(condition, nowMs),
    useDeduction(condition, nowMs),
    failureDeduction(condition),
    condition.companyHasAllowlist
      ? null
      : { points: 15, reason: 'The company has no IP allowlist.' },
  ].filter((deduction) => deduction !== null)
  const lost = deductions.reduce((sum, { points }) => sum + points, 0)
  return { score: Math.max(0, 100 - lost), deductions }
}

function ageDeduction(
  { createdAt, graceUntil }: KeyCondition,
  nowMs: number,
): HealthDeduction | null {
  if (graceUntil !== null) return null
  const days = (nowMs - createdAt.getTime()) / DAY_MS
  if (days > 365) return { points: 30, reason: 'Not rotated for more than a year.' }
  if (days > 180) return { points: 20, reason: 'Not rotated for more than 180 days.' }
  if (days > 90) return { points: 10, reason: 'Not rotated for more than 90 days.' }
  return null
}

function expiryDeduction(
  { expiresAt, graceUntil }: KeyCondition,
  nowMs: number,
): HealthDeduction | null {
  if (graceUntil !== null)
    return { points: 20, reason: 'Replaced; works only until its grace period ends.' }
  if (expiresAt === null) return { points: 10, reason: 'Never expires.' }
  const days = (expiresAt.getTime() - nowMs) / DAY_MS
  if (days < 7) return { points: 20, reason: 'Expires within 7 days.' }
  if (days < 30) return { points: 10, reason: 'Expires within 30 days.' }
  return null
}

function useDeduction(
  { createdAt, lastUsedAt }: KeyCondition,
  nowMs: number,
): HealthDeduction | null {
  const days = (nowMs - (lastUsedAt ?? createdAt).getTime()) / DAY_MS
  if (days > 90) return { points: 25, reason: 'Unused for more than 90 days.' }
  if (days > 30) return { points: 15, reason: 'Unused for more than 30 days.' }
  return null
}

function failureDeduction({ callsToday, failuresToday }: KeyCondition): HealthDeduction | null {
  if (callsToday < CALLS_TO_JUDGE_MIN) return null
  const share = failuresToday / callsToday
  if (share >= 0.5) return { points: 25, reason: "At least half of today's calls failed." }
  if (share >= 0.1) return { points: 10, reason: "At least 10% of today's calls failed." }
  return null
}
