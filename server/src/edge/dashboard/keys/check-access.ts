import type { ErrorCode } from '../../../errors.ts'
import { type KeyStatus, keyStatusAt } from '../../../tenancy/key/key-status.ts'
import { type Plan, PLAN_TERMS } from '../../../tenancy/plans.ts'
import { ENDED_KEY_CODES, principalOf } from '../../auth/authenticate.ts'
import { type Gate, GATE_CHECKS } from '../../auth/gate.ts'
import type { CachedKey } from '../../auth/key-cache.ts'

/** The result of one check, with an error code if it fails. */
export type AccessCheck = { name: string; code: ErrorCode | null; message: string }

/** Runs every check that a call with the key would face, in the same order. Each is independent. */
export function checkAccess(
  key: CachedKey,
  { gate, address, nowMs }: { gate: Gate; address: string; nowMs: number },
): AccessCheck[] {
  const principal = principalOf(key)
  return [
    { name: 'exists', code: null, message: 'The key exists.' },
    checkStatus(key, nowMs),
    ...GATE_CHECKS.map(({ name, code, refusal, passMessage }) => {
      const reason = refusal(principal, address, gate)
      return reason === null
        ? { name, code: null, message: passMessage(principal, address, gate) }
        : { name, code, message: reason }
    }),
  ]
}

function checkStatus(key: CachedKey, nowMs: number): AccessCheck {
  const status = keyStatusAt(key, nowMs)
  return { name: 'status', code: ENDED_KEY_CODES[status], message: statusMessages(key)[status] }
}

function statusMessages({ revokedAt, graceUntil, expiresAt }: CachedKey) {
  return {
    ACTIVE: 'The key is active.',
    ROTATING: `The key was replaced and works until ${graceUntil?.toISOString()}.`,
    EXPIRED: `The key expired at ${expiresAt?.toISOString()}.`,
    REVOKED:
      revokedAt === null
        ? `The key was replaced, and its grace period ended at ${graceUntil?.toISOString()}.`
        : `The key was revoked at ${revokedAt.toISOString()}.`,
  } satisfies Record<KeyStatus, string>
}

export function describeRateLimit(plan: Plan, hasRateLimits: boolean): string {
  const perSecond = PLAN_TERMS[plan].eventsPerSecondMax
  if (!hasRateLimits) return 'Rate limits are disabled on this installation.'
  if (perSecond === null) return `The ${plan} plan has no rate limit.`
  return `The ${plan} plan allows ${perSecond} calls or events per second and key. Calls above the limit get a 429.`
}
