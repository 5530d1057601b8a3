import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { verifyPassword } from '../../../tenancy/sign-in/password.ts'
import { type Account, findAccount, lockAccount } from '../../../tenancy/member/user-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { SessionRecord, SignInChallengeRecord } from '../../schema/dashboard/session.ts'
import { audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { EmailText, PasswordText, sendSignIn, signIn } from './open-session.ts'

const Credentials = Type.Object({ email: EmailText, password: PasswordText }, STRICT)

type LogInDeps = Pick<DashboardDeps, 'db' | 'dbFast' | 'clock' | 'cookie' | 'login' | 'slots'>

/** POST /dashboard/session: creates a session and sets its cookie, or asks for the second factor. */
export const logIn = defineRoute({
  method: 'POST',
  path: '/dashboard/session',
  public: { throttle: 'login' },
  summary: 'Sign in',
  description:
    'Creates a session and sets its cookie. If the member has a second factor, returns a challenge instead, with status 202. The response is the same for a wrong password and an unknown account. Attempts are throttled by account and by IP address.',
  body: Credentials,
  errors: ['not_signed_in'],
  response: { 200: SessionRecord, 202: SignInChallengeRecord },
  handle: (deps: LogInDeps) => async (request, reply) => {
    const { body, clientAddress: address, id: traceId } = request
    const attempt = { address, account: body.email }
    const { throttle, failures, throttled } = deps.login
    const checking = throttle.runAdmitted('login', attempt, async () => {
      const { account: found, isRight } = await checkPassword(deps, attempt, body)
      if (found && isRight) return found
      failures.count({ account: found, address, traceId })
      throw wrongCredentialsError()
    })
    const account = await checking.catch((error: unknown) => {
      const isThrottled = error instanceof ApiError && error.code === 'rate_limited'
      if (isThrottled) throttled.count({ email: body.email, address, traceId })
      throw error
    })
    const actor = { ...account, address, traceId }
    const signingIn = deps.slots.run(account.companyId, () =>
      audited(deps, actor, async (trx, record) => {
        if (!(await lockAccount(trx, account))) throw wrongCredentialsError()
        return await signIn(deps, trx, request, { userId: account.userId, record })
      }),
    )
    const result = await signingIn.catch((error: unknown) => {
      const isOutside = error instanceof ApiError && error.code === 'ip_not_allowed'
      if (isOutside) failures.count({ account, address, traceId, isOutsideAllowlist: true })
      throw error
    })
    return await sendSignIn(deps, request, reply, result)
  },
})

/**
 * Also looks up the account only when it is the caller's turn, so that a flood doesn't queue for the
 * database.
 */
async function checkPassword(
  { login, dbFast }: LogInDeps,
  attempt: { address: string; account: string },
  { email, password }: { email: string; password: string },
): Promise<{ account: Account | null; isRight: boolean }> {
  return await login.hash(attempt, async () => {
    const account = await findAccount(dbFast, email)
    return { account, isRight: await verifyPassword(password, account?.passwordHash ?? null) }
  })
}

function wrongCredentialsError(): ApiError {
  return new ApiError('not_signed_in', { message: 'The email address or password is wrong.' })
}
