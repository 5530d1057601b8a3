import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { OidcError, type OidcFailure } from '../../../platform/oidc/oidc-error.ts'
import { consumeSignIn } from '../../../tenancy/identity/identity-store.ts'
import { isMailAddress } from '../../../tenancy/member/mail-address.ts'
import type { IdentityProvider } from '../../auth/oidc/identity-provider.ts'
import { returnPathOf } from '../../auth/oidc/return-path.ts'
import type { PendingSignIn } from '../../auth/oidc/sign-in-cookie.ts'
import { defineRoute } from '../../define-route.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import type { SignIn } from '../session/open-session.ts'
import { enterAccount, EntryRefusedError } from './enter-account.ts'
import { notConfiguredError } from './start-oidc-sign-in.ts'

/** The limit for anonymous callers, as for bodies. */
const URL_BYTES_MAX = 4 * 1_024

const parameter = (description: string) =>
  Type.Optional(Type.String({ maxLength: URL_BYTES_MAX, description }))
/** Providers can add parameters, and the protocol requires us to ignore them. */
const ProviderResponse = Type.Object(
  {
    code: parameter('Proves the sign-in to the identity provider.'),
    state: parameter('Names the sign-in.'),
    iss: parameter('The identity provider.'),
    error: parameter('Why the identity provider refused the sign-in.'),
  },
  { additionalProperties: true },
)

type FinishDeps = Pick<
  DashboardDeps,
  'db' | 'dbFast' | 'clock' | 'cookie' | 'login' | 'slots' | 'logger' | 'provider' | 'signInCookie'
>

/** Why the browser returns to the sign-in page. The dashboard has a sentence for each. */
type Problem =
  | OidcFailure
  | EntryRefusedError['reason']
  | 'sign_in_over'
  | 'unverified_email'
  | 'company_full'
  | 'address_not_allowed'
  | 'busy'

class SignInProblem extends ApiError {
  readonly problem: Problem

  constructor(problem: Problem, cause?: unknown) {
    super('not_signed_in', { message: `The sign-in failed: ${problem}.`, cause })
    this.problem = problem
  }
}

/**
 * GET /dashboard/oidc/callback: where the identity provider sends the browser. Every sign-in leads to a page of
 * the dashboard, which explains what went wrong. The details are after the `#`, which browsers send to no server.
 * Only a request that is refused before the sign-in is read, such as one too many, gets an error like other calls.
 */
export const finishOidcSignIn = defineRoute({
  method: 'GET',
  path: '/dashboard/oidc/callback',
  public: { throttle: 'oidcReturn' },
  summary: 'Finish a sign-in with OpenID Connect',
  description:
    'The identity provider sends the browser here. Redirects to a page of the dashboard, signed in. If the member has a second factor, the part after `#` contains the challenge, and if the sign-in failed, the reason. Works once per sign-in, in the browser that started it.',
  query: ProviderResponse,
  errors: ['not_found'],
  response: { 303: Type.Null({ description: 'Go to the dashboard.' }) },
  // A HEAD request, such as one from a link preview, must not use up the sign-in.
  options: { exposeHeadRoute: false },
  before: () => async (request) => {
    if (Buffer.byteLength(request.url) <= URL_BYTES_MAX) return
    throw new ApiError('invalid_request', {
      message: `The address is longer than ${URL_BYTES_MAX} bytes. Start the sign-in again.`,
    })
  },
  handle: (deps: FinishDeps) => async (request, reply) => {
    const { provider, signInCookie } = deps
    if (!provider) throw notConfiguredError()
    const pending = signInCookie.read(request.headers.cookie, deps.clock())
    const returnTo = returnPathOf(pending?.returnTo) ?? '/app/explorer'
    const isOurs = pending !== null && request.query.state === pending.secrets.state
    // A link on another site must not end a sign-in that is under way.
    if (isOurs) reply.header('set-cookie', signInCookie.clear())
    try {
      const result = await deps.login.throttle.runAdmitted(
        'oidcReturn',
        { address: request.clientAddress },
        () => finishSignIn(deps, provider, request, isOurs ? pending : null),
      )
      return await sendResult(deps, request, reply, { result, returnTo })
    } catch (error) {
      const problem = problemIn(error)
      if (problem === null) throw error
      return await redirect(reply, `${returnTo}#sign-in=${problem}`)
    }
  },
})

async function finishSignIn(
  deps: FinishDeps,
  provider: IdentityProvider,
  request: FastifyRequest,
  pending: PendingSignIn | null,
): Promise<SignIn> {
  if (pending === null) throw new SignInProblem('sign_in_over')
  const parameters = new URL(request.url, 'http://callback.invalid').searchParams
  const { state } = pending.secrets
  const expiresAt = new Date(pending.expiresAtMs)
  if (!(await consumeSignIn(deps.dbFast, { state, expiresAt }))) {
    throw new SignInProblem('sign_in_over')
  }
  const { clientAddress: address, id: traceId } = request
  try {
    const person = await provider.identify(parameters, pending.secrets, {
      address,
      isKnown: deps.login.isKnownNetwork(address),
    })
    const { subject, email, groups, isEmailVerified } = person
    if (email === null || !isEmailVerified || !isMailAddress(email)) {
      throw new SignInProblem('unverified_email')
    }
    const { issuer } = provider
    const { linkToken } = pending
    return await enterAccount(deps, request, { issuer, subject, email, groups, linkToken })
  } catch (error) {
    // A failure of the provider is not the caller's mistake, so it doesn't count against their address.
    if (error instanceof OidcError && error.failure !== 'unavailable') {
      throw new SignInProblem(error.failure, error)
    }
    if (!(error instanceof EntryRefusedError)) throw error
    const account = error.reason === 'other_account' ? error.account : null
    deps.login.failures.count({ account, address, traceId, via: 'OPENID_CONNECT' })
    throw new SignInProblem(error.reason, error)
  }
}

function problemIn(error: unknown): Problem | null {
  if (error instanceof SignInProblem) return error.problem
  if (error instanceof OidcError) return error.failure
  if (!(error instanceof ApiError)) return null
  if (error.code === 'conflict') return 'company_full'
  if (error.code === 'ip_not_allowed') return 'address_not_allowed'
  return error.code === 'overloaded' ? 'busy' : null
}

async function sendResult(
  deps: FinishDeps,
  { clientAddress }: FastifyRequest,
  reply: FastifyReply,
  { result, returnTo }: { result: SignIn; returnTo: string },
) {
  if ('challenge' in result) {
    return await redirect(reply, `${returnTo}#sign-in-challenge=${result.challenge.token}`)
  }
  deps.login.noteSignIn(clientAddress)
  reply.header('set-cookie', deps.cookie.set(result.token))
  return await redirect(reply, returnTo)
}

async function redirect(reply: FastifyReply, location: string) {
  // The address of this page contains the code of the sign-in.
  reply.headers({ location, 'referrer-policy': 'no-referrer' })
  return null
}
