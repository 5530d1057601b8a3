import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { UserId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import {
  PASSWORD_LENGTH_MAX,
  PASSWORD_LENGTH_MIN,
} from '../../../tenancy/sign-in/password-rules.ts'
import { passwordFault } from '../../../tenancy/sign-in/password-rules.ts'
import {
  insertSession,
  deleteSessionByToken,
  findViewer,
  type SessionToken,
} from '../../../tenancy/sign-in/session-store.ts'
import { findSecondFactor } from '../../../tenancy/sign-in/second-factor-store.ts'
import {
  insertChallenge,
  type NewChallenge,
  type UnlinkedPerson,
} from '../../../tenancy/sign-in/sign-in-challenge-store.ts'
import { findDashboardAllowlist } from '../../../tenancy/company-store.ts'
import type { AuditEntry } from '../../../tenancy/caller.ts'
import { refuseAddress } from '../../auth/require-session.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { sessionRecord } from './get-session.ts'

/** A password as sent, whether or not it is right. */
export const PasswordText = Type.String({
  minLength: 1,
  maxLength: 1_024,
  description: 'The current password.',
})
export const NewPassword = Type.String({
  maxLength: 1_024,
  description: `${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters. The email address and common passwords are refused.`,
})
export const EmailText = Type.String({
  minLength: 1,
  maxLength: 254,
  description: 'The email address of the account.',
})

type OpenDeps = Pick<DashboardDeps, 'db' | 'clock' | 'cookie'>

/**
 * Always creates a new session with a new cookie, and ends the session of the request's cookie. A cookie that
 * an attacker planted before the login is worthless afterwards.
 */
export async function openSession(
  { clock, cookie }: OpenDeps,
  trx: Queryable,
  { headers, clientAddress: address }: FastifyRequest,
  userId: UserId,
): Promise<{ id: string; token: SessionToken }> {
  refuseAddress(address, await findDashboardAllowlist(trx, userId))
  const previous = cookie.read(headers.cookie)
  if (previous !== null) await deleteSessionByToken(trx, previous)
  const userAgent = headers['user-agent'] ?? ''
  return await insertSession(trx, { userId, address, userAgent, nowMs: clock() })
}

/** What the first step of a sign-in leads to. */
export type SignIn = { token: SessionToken } | { challenge: NewChallenge }

type FirstStep = {
  userId: UserId
  record: (entry: AuditEntry) => void
  via?: 'OPENID_CONNECT'
}

/** Opens a session, unless the member has a second factor, which they must enter first. */
export async function signIn(
  deps: OpenDeps,
  trx: Queryable,
  request: FastifyRequest,
  step: FirstStep,
): Promise<SignIn> {
  const challenged = await requestSecondFactor(deps, trx, request, step)
  if (challenged) return challenged
  const { userId, record, ...metadata } = step
  const { id, token } = await openSession(deps, trx, request, userId)
  record({ action: 'LOGIN_SUCCEEDED', resource: { type: 'session', id }, metadata })
  return { token }
}

/** Null if the member has no second factor. Their account is linked to `person` after the second step. */
export async function requestSecondFactor(
  { clock }: Pick<OpenDeps, 'clock'>,
  trx: Queryable,
  { clientAddress }: FastifyRequest,
  { userId, record, person, ...metadata }: FirstStep & { person?: UnlinkedPerson },
): Promise<{ challenge: NewChallenge } | null> {
  if (!(await findSecondFactor(trx, userId))) return null
  // Before the challenge, because a reset has changed the password by now.
  refuseAddress(clientAddress, await findDashboardAllowlist(trx, userId))
  record({ action: 'SECOND_FACTOR_REQUESTED', resource: { type: 'user', id: userId }, metadata })
  return { challenge: await insertChallenge(trx, { userId, nowMs: clock(), person }) }
}

/** Call after the commit. */
export async function sendSignIn(
  deps: OpenDeps & Pick<DashboardDeps, 'login'>,
  request: FastifyRequest,
  reply: FastifyReply,
  result: SignIn,
) {
  if ('challenge' in result) {
    const { token, expiresAt } = result.challenge
    reply.code(202)
    return { challenge: token, expiresAt: expiresAt.toISOString() }
  }
  return await sendSignedIn(deps, request, reply, result.token)
}

/** Call after the commit. Sets the cookie and returns the same record as GET /dashboard/session. */
export async function sendSignedIn(
  deps: OpenDeps & Pick<DashboardDeps, 'login'>,
  { clientAddress }: FastifyRequest,
  reply: FastifyReply,
  token: SessionToken,
) {
  deps.login.noteSignIn(clientAddress)
  const viewer = await findViewer(deps.db, token, deps.clock())
  if (!viewer) throw new ApiError('not_signed_in')
  reply.header('set-cookie', deps.cookie.set(token))
  return await sessionRecord(deps, viewer, clientAddress)
}

export function refuseBadPassword(
  password: string,
  { email, path }: { email: string; path: string },
): void {
  const fault = passwordFault(password, { email })
  if (fault === null) return
  throw new ApiError('invalid_request', {
    message: `The password ${fault}.`,
    details: [{ path, message: fault }],
  })
}
