import type { FastifyContextConfig } from 'fastify'
import type { Permission } from '../../tenancy/policy.ts'
import type { Gate } from './gate.ts'
import type { LoginGuard } from './login/login-guard.ts'
import type { AttemptKind } from './login/login-throttle.ts'
import type { Hook, KeyGuard } from './require-key.ts'
import type { SessionGuard } from './require-session.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route requires of a key. */
    gate?: Gate
    /** The permission that a dashboard route requires. Null: anyone can call it. */
    permission?: Permission | null
  }
}

/** Who can call a route. */
export type RouteGuard =
  /** Requests with a key that passes the gate. */
  | { key: Gate; member?: never; public?: never }
  /** Signed-in members whose role has the permission. */
  | { member: Permission; key?: never; public?: never }
  /** Anyone. A throttle limits how often per address, and the size of the body. */
  | { public: true | { throttle: AttemptKind }; key?: never; member?: never }

export type Guards = { keyGuard: KeyGuard; sessionGuard: SessionGuard; login: LoginGuard }

/** The body limit for anonymous callers. An email address, a password and a token fit easily. */
const ANONYMOUS_BODY_BYTES_MAX = 4 * 1_024

/** The checks of a guard, which all run before the body is read, and their description for other hooks. */
export function guardOptions(
  { key, member, public: open }: RouteGuard,
  { keyGuard, sessionGuard, login }: Guards,
): { onRequest: Hook[]; config: FastifyContextConfig; bodyLimit?: number } {
  if (key) return { onRequest: [keyGuard.requireKey(key)], config: { gate: key } }
  if (member) {
    return { onRequest: [sessionGuard.requireMember(member)], config: { permission: member } }
  }
  if (open === true) return { onRequest: [], config: {} }
  return {
    onRequest: [sessionGuard.requireSameSite, login.throttle.byAddress(open.throttle)],
    config: { permission: null },
    bodyLimit: ANONYMOUS_BODY_BYTES_MAX,
  }
}
