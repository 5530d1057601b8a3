import { randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { insertPendingFactor } from '../../../tenancy/sign-in/second-factor-store.ts'
import { base32, otpauthUri, TOTP_SECRET_BYTES } from '../../../tenancy/sign-in/totp.ts'
import { sealFactorSecret } from '../../../tenancy/sign-in/use-second-factor.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { NewSecondFactor } from '../../schema/dashboard/second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import { checkOwnPassword, lockOwnAccount, OwnPassword } from './own-factor.ts'

/** POST /dashboard/second-factor: creates a secret for the member's authenticator app. */
export const startSecondFactor = defineRoute({
  method: 'POST',
  path: '/dashboard/second-factor',
  member: 'self.enroll',
  summary: 'Set up a second factor',
  description:
    'Creates a secret for an authenticator app (TOTP). It has no effect until the member confirms it with a code, within one hour.',
  body: Type.Object({ currentPassword: OwnPassword }, STRICT),
  errors: ['conflict'],
  response: { 201: NewSecondFactor },
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'login' | 'factorBox'>) => async (request) => {
      const { viewer, body } = request
      const { userId, email } = viewer
      const passwordHash = await checkOwnPassword(deps, request, body.currentPassword)
      const secret = randomBytes(TOTP_SECRET_BYTES)
      const sealed = sealFactorSecret(deps.factorBox, userId, secret)
      // No audit entry: nothing changes until the secret is confirmed.
      await audited(deps, actorOf(request), async (trx) => {
        await lockOwnAccount(trx, request, passwordHash)
        const pending = { userId, secret: sealed, nowMs: deps.clock() }
        if (await insertPendingFactor(trx, pending)) return
        throw new ApiError('conflict', {
          message: 'You already have a second factor. To use another app, turn it off first.',
        })
      })
      return { secret: base32(secret), uri: otpauthUri({ email, secret }) }
    },
})
