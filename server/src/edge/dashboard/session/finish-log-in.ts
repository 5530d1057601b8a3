import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { SessionToken } from '../../../tenancy/sign-in/session-store.ts'
import {
  type ChallengedAccount,
  deleteChallenge,
  findChallenged,
  lockChallenge,
  spendAttempt,
} from '../../../tenancy/sign-in/sign-in-challenge-store.ts'
import { useSecondFactor } from '../../../tenancy/sign-in/use-second-factor.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { FactorCode } from '../../schema/dashboard/second-factor.ts'
import { SessionRecord } from '../../schema/dashboard/session.ts'
import { audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { linkAfterSecondFactor } from '../oidc/link-account.ts'
import { openSession, sendSignedIn } from './open-session.ts'

const SecondStep = Type.Object(
  {
    challenge: Type.String({ maxLength: 200, description: 'The challenge of the first step.' }),
    code: FactorCode,
  },
  STRICT,
)

type FinishDeps = Pick<
  DashboardDeps,
  'db' | 'dbFast' | 'clock' | 'cookie' | 'login' | 'slots' | 'factorBox' | 'logger'
>

/** POST /dashboard/session/second-factor: the second step of signing in. */
export const finishLogIn = defineRoute({
  method: 'POST',
  path: '/dashboard/session/second-factor',
  public: { throttle: 'challenge' },
  summary: 'Enter the second factor',
  description:
    'Finishes a sign-in with a code of the authenticator app or a recovery code. Each code and each challenge works once. After five wrong codes, the member has to enter the password again. Attempts are throttled by account and by IP address.',
  body: SecondStep,
  errors: ['not_signed_in'],
  response: SessionRecord,
  handle: (deps: FinishDeps) => async (request, reply) => {
    const { body, clientAddress: address, id: traceId } = request
    const { throttle, throttled } = deps.login
    const token = await throttle.runAdmitted('challenge', { address }, async () => {
      const account = await findChallenged(deps.dbFast, body.challenge, deps.clock())
      if (!account) throw challengeOverError()
      const { email } = account
      const entering = throttle.run('code', { address, account: email }, () =>
        enterCode(deps, request, { ...body, account }),
      )
      return await entering.catch((error: unknown) => {
        const isThrottled = error instanceof ApiError && error.code === 'rate_limited'
        if (isThrottled) throttled.count({ email, address, traceId })
        throw error
      })
    })
    return await sendSignedIn(deps, request, reply, token)
  },
})

type Refusal = {
  error: ApiError
  failure: {
    account: ChallengedAccount | null
    isSecondStep?: true
    via?: 'OPENID_CONNECT'
  }
}

async function enterCode(
  deps: FinishDeps,
  request: FastifyRequest,
  { challenge, code, account }: { challenge: string; code: string; account: ChallengedAccount },
): Promise<SessionToken> {
  const { clientAddress: address, id: traceId } = request
  const { userId, companyId } = account
  const nowMs = deps.clock()
  const wrong = (error: ApiError): Refusal => ({ error, failure: { account, isSecondStep: true } })
  // A refusal is a value here, because an error would undo that the attempt is counted.
  const result = await deps.slots.run(companyId, () =>
    audited(
      deps,
      { ...account, address, traceId },
      async (trx, record): Promise<SessionToken | Refusal> => {
        const locked = await lockChallenge(trx, challenge, nowMs)
        if (!locked) return wrong(challengeOverError())
        const use = await useSecondFactor(trx, deps.factorBox, { userId, code, nowMs })
        if (!use) {
          return wrong(
            (await spendAttempt(trx, challenge)) ? wrongCodeError() : challengeOverError(),
          )
        }
        await deleteChallenge(trx, challenge)
        const { person } = locked
        const link = person && { member: { userId, companyId }, person, record }
        const linked = link ? await linkAfterSecondFactor(deps, trx, link) : 'linked'
        if (linked !== 'linked') {
          const owner = linked === 'other_account' ? account : null
          return {
            error: linkRefusedError(linked),
            failure: { account: owner, via: 'OPENID_CONNECT' },
          }
        }
        const session = await openSession(deps, trx, request, userId)
        const resource = { type: 'session', id: session.id }
        record({ action: 'LOGIN_SUCCEEDED', resource, metadata: use })
        return session.token
      },
    ),
  )
  if (typeof result === 'string') return result
  deps.login.failures.count({ ...result.failure, address, traceId })
  throw result.error
}

function wrongCodeError(): ApiError {
  return notSignedInError('/code', 'The code is wrong or was already used. Enter the current one.')
}

function linkRefusedError(reason: 'other_account' | 'access_removed'): ApiError {
  const message =
    reason === 'other_account'
      ? 'This account is linked to another person. Ask an owner or admin of your company.'
      : 'Your groups no longer give you access. Ask an owner or admin of your company.'
  return notSignedInError('/challenge', message)
}

function challengeOverError(): ApiError {
  return notSignedInError('/challenge', 'This sign-in is no longer valid. Sign in again.')
}

function notSignedInError(path: string, message: string): ApiError {
  return new ApiError('not_signed_in', { message, details: [{ path, message }] })
}
