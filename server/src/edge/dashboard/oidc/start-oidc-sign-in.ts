import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { OidcError } from '../../../platform/oidc/oidc-error.ts'
import { returnPathOf } from '../../auth/oidc/return-path.ts'
import { SIGN_IN_LIFE_MS } from '../../auth/oidc/sign-in-cookie.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const SignInStart = Type.Object(
  {
    returnTo: Type.Optional(
      Type.String({
        maxLength: 1_000,
        description:
          'The page of the dashboard to return to, with its query. Default: the explorer.',
      }),
    ),
    linkToken: Type.Optional(
      Type.String({
        maxLength: 200,
        description: 'The part after `#` of the invitation link to accept.',
      }),
    ),
  },
  STRICT,
)

type StartDeps = Pick<DashboardDeps, 'clock' | 'login' | 'provider' | 'signInCookie'>

/**
 * POST /dashboard/oidc/start: begins a sign-in at the identity provider. The token of an invitation is in the
 * body, because URLs are logged.
 */
export const startOidcSignIn = defineRoute({
  method: 'POST',
  path: '/dashboard/oidc/start',
  public: { throttle: 'oidcStart' },
  summary: 'Start a sign-in with OpenID Connect',
  description:
    'Returns the address at the identity provider to send the browser to, and sets a cookie that binds the sign-in to this browser for ten minutes. With an invitation, the person joins its company.',
  body: SignInStart,
  errors: ['not_found', 'unavailable'],
  response: Type.Object(
    { url: Type.String({ description: 'Where the person signs in.' }) },
    { ...STRICT, description: 'The sign-in has started.' },
  ),
  handle: (deps: StartDeps) => async (request, reply) => {
    const { body, clientAddress: address } = request
    return await deps.login.throttle.runAdmitted('oidcStart', { address }, async () => {
      const { provider } = deps
      if (!provider) throw notConfiguredError()
      const returnTo = returnPathOf(body.returnTo)
      if (returnTo === null) throw foreignPageError()
      const { url, secrets } = await provider.start().catch((error: unknown) => {
        throw error instanceof OidcError ? providerDownError(provider.name, error) : error
      })
      const expiresAtMs = deps.clock() + SIGN_IN_LIFE_MS
      const linkToken = body.linkToken ?? null
      const cookie = deps.signInCookie.set({ secrets, returnTo, linkToken, expiresAtMs })
      reply.header('set-cookie', cookie)
      return { url }
    })
  },
})

export function notConfiguredError(): ApiError {
  return new ApiError('not_found', {
    message: 'Sign-in with OpenID Connect is not configured. Sign in with your password.',
  })
}

function foreignPageError(): ApiError {
  const message = 'must be the path of a page of the dashboard'
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /returnTo ${message}.`,
    details: [{ path: '/returnTo', message }],
  })
}

function providerDownError(name: string, cause: OidcError): ApiError {
  return new ApiError('unavailable', {
    message: `Sign-in with ${name} is not available at the moment. Try again in a minute, or sign in with your password.`,
    retryAfterSeconds: 10,
    cause,
  })
}
