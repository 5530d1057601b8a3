import type { SealedSecrets, Target } from '../webhook.ts'

/** The secrets that apply at a given time. Once the overlap has ended, only the new one remains. */
export function secretsAt(secrets: SealedSecrets, nowMs: number): SealedSecrets {
  const isOver = secrets.nextAt !== null && secrets.nextAt.getTime() <= nowMs
  return isOver ? finishRotation(secrets) : secrets
}

export function targetAt({ url, secrets, headers }: Target, nowMs: number): Target {
  return { url, secrets: secretsAt(secrets, nowMs), headers }
}

/** Makes the new secret the only one. Without a rotation, nothing changes. */
export function finishRotation({ current, next }: SealedSecrets): SealedSecrets {
  return { current: next ?? current, next: null, nextAt: null }
}

/**
 * Adds a new secret. Returns null during the overlap of an earlier rotation, because a receiver would have
 * to know three secrets. Without an overlap, `fresh` replaces all secrets at once, so that a leaked secret
 * can be dropped at any time.
 */
export function rotate(
  secrets: SealedSecrets,
  fresh: Buffer,
  { overlapMs, nowMs }: { overlapMs: number; nowMs: number },
): SealedSecrets | null {
  if (overlapMs === 0) return { current: fresh, next: null, nextAt: null }
  const { current, nextAt } = secretsAt(secrets, nowMs)
  return nextAt === null ? { current, next: fresh, nextAt: new Date(nowMs + overlapMs) } : null
}
