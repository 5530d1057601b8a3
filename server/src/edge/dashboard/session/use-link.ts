import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { acceptLink } from '../../../tenancy/member/accept-link.ts'
import { findLink } from '../../../tenancy/member/one-time-link-store.ts'
import { hashPassword } from '../../../tenancy/sign-in/password.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { SessionRecord, SignInChallengeRecord } from '../../schema/dashboard/session.ts'
import { audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { LinkTokenText, linkNotFoundError } from './get-link.ts'
import { NewPassword, refuseBadPassword, sendSignIn, signIn } from './open-session.ts'

type LinkDeps = Pick<DashboardDeps, 'db' | 'dbFast' | 'clock' | 'cookie' | 'login' | 'slots'>
type LinkUse = { token: string; password: string }

/** POST /dashboard/links/use: joins a company or sets a new password, and signs in. */
export const useLink = defineRoute({
  method: 'POST',
  path: '/dashboard/links/use',
  public: { throttle: 'link' },
  summary: 'Use a one-time link',
  description:
    'An invitation creates the account. A reset link sets a new password and ends all sessions. Both sign the member in. If the member has a second factor, returns a challenge instead, with status 202. A link works once.',
  body: Type.Object(
    { token: LinkTokenText, password: NewPassword },
    { ...STRICT, description: 'The link and the new password.' },
  ),
  errors: ['not_found', 'conflict'],
  response: { 200: SessionRecord, 202: SignInChallengeRecord },
  handle: (deps: LinkDeps) => async (request, reply) => {
    const attempt = { address: request.clientAddress }
    const result = await deps.login.throttle.runAdmitted('link', attempt, () =>
      signInByLink(deps, request, request.body),
    )
    return await sendSignIn(deps, request, reply, result)
  },
})

async function signInByLink(
  deps: LinkDeps,
  request: FastifyRequest,
  { token, password }: LinkUse,
): ReturnType<typeof signIn> {
  const nowMs = deps.clock()
  // Check the link before hashing the password, so that invalid links cost no hashing.
  const link = await findLink(deps.dbFast, token, nowMs)
  if (!link) throw linkNotFoundError()
  const { companyId, email } = link
  refuseBadPassword(password, { email, path: '/password' })
  const { clientAddress: address, id: traceId } = request
  const attempt = { address, account: email }
  const passwordHash = await deps.login.hash(attempt, () => hashPassword(password))
  const actor = { companyId, userId: null, email, role: null, address, traceId }
  using _slot = await deps.slots.take(companyId, null)
  return await audited(deps, actor, async (trx, record) => {
    const accepted = await acceptLink(trx, { token, passwordHash, nowMs })
    if (!accepted) throw linkNotFoundError()
    const { userId, endedSessions } = accepted
    const resource = { type: 'user', id: userId }
    if (accepted.kind === 'INVITATION') {
      record({ action: 'MEMBER_JOINED', resource, metadata: { role: accepted.role } })
    } else {
      record({ action: 'PASSWORD_RESET', resource, metadata: { endedSessions } })
    }
    return await signIn(deps, trx, request, { userId, record })
  })
}
