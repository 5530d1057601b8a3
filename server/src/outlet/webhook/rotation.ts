import type { SealedSecrets } from './webhook.ts'

/** What the secrets come to at a moment: an overlap that has ended leaves the new one alone. */
export function secretsAt(secrets: SealedSecrets, nowMs: number): SealedSecrets {
  const isOver = secrets.nextAt !== null && secrets.nextAt.getTime() <= nowMs
  return isOver ? finishRotation(secrets) : secrets
}

/** The new secret becomes the only one. Without a rotation nothing changes. */
export function finishRotation({ current, next }: SealedSecrets): SealedSecrets {
  return { current: next ?? current, next: null, nextAt: null }
}

/**
 * The secrets once `fresh` was added, or null while an overlap of an earlier rotation lasts: a
 * receiver would have to know three. Without an overlap `fresh` replaces whatever there is at once,
 * so that a secret that became known can be dropped at any time.
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
