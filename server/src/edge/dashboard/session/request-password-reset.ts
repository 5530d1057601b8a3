import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { linkText } from '../link-text.ts'
import { EmailText } from './open-session.ts'

const RESPONSE = {
  message:
    "If there is an account for this address and this service sends mail, we sent it a link. If it doesn't arrive, ask an admin of your company for one.",
} as const

/** POST /dashboard/password-reset: the response is the same for every email address. */
export const requestPasswordReset = defineRoute({
  method: 'POST',
  path: '/dashboard/password-reset',
  public: { throttle: 'reset' },
  summary: 'Request a password reset',
  description:
    'The response is always the same. It reveals neither whether the account exists nor whether an email is sent.',
  body: Type.Object({ email: EmailText }, STRICT),
  response: {
    202: Type.Object(
      { message: Type.String({ description: 'A human-readable message: what happens next.' }) },
      { ...STRICT, description: 'The request is accepted.' },
    ),
  },
  handle:
    (deps: Pick<DashboardDeps, 'login' | 'publicUrl'>) =>
    async ({ body: { email }, clientAddress: address, id: traceId, server }) => {
      const attempt = { address, account: email }
      const linkOf = (token: string) => linkText(deps, server, token)
      await deps.login.throttle.runAdmitted('reset', attempt, async () => {
        const isTaken = deps.login.resets.push({ email, address, traceId, linkOf })
        if (!isTaken) throw new ApiError('overloaded')
      })
      return RESPONSE
    },
})
