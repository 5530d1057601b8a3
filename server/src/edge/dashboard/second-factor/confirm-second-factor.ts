import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { confirmFactor, lockPendingSecret } from '../../../tenancy/sign-in/second-factor-store.ts'
import { deleteSessions } from '../../../tenancy/sign-in/session-store.ts'
import { acceptedStep } from '../../../tenancy/sign-in/totp.ts'
import { openFactorSecret } from '../../../tenancy/sign-in/use-second-factor.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { FactorCode, RecoveryCodes } from '../../schema/dashboard/second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import { createRecoveryCodeSet, WrongFactorError } from './own-factor.ts'

/** POST /dashboard/second-factor/confirm: turns the second factor on. */
export const confirmSecondFactor = defineRoute({
  method: 'POST',
  path: '/dashboard/second-factor/confirm',
  member: 'self.enroll',
  summary: 'Turn on your second factor',
  description:
    'Confirms the secret with a code of the authenticator app. From then on, signing in requires a code. Ends all other sessions of the member, which were opened without one.',
  body: Type.Object(
    { code: { ...FactorCode, description: 'The current code of the authenticator app.' } },
    STRICT,
  ),
  errors: ['conflict'],
  response: RecoveryCodes,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'factorBox'>) => async (request) => {
    const { userId, sessionId } = request.viewer
    const code = request.body.code.replaceAll(/\s/g, '')
    const nowMs = deps.clock()
    const { recoveryCodes, recoveryHashes } = createRecoveryCodeSet()
    await audited(deps, actorOf(request), async (trx, record) => {
      const sealed = await lockPendingSecret(trx, userId, nowMs)
      const secret = sealed && openFactorSecret(deps.factorBox, userId, sealed)
      if (!secret) throw nothingToConfirmError()
      const usedStep = acceptedStep(secret, code, { nowMs, usedStep: 0 })
      if (usedStep === null) throw new WrongFactorError()
      await confirmFactor(trx, { userId, usedStep, recoveryHashes, nowMs })
      const endedSessions = await deleteSessions(trx, { userId, except: sessionId })
      const resource = { type: 'user', id: userId }
      record({ action: 'SECOND_FACTOR_ENABLED', resource, metadata: { endedSessions } })
    })
    return { recoveryCodes }
  },
})

function nothingToConfirmError(): ApiError {
  return new ApiError('conflict', {
    message: 'There is no second factor to confirm, or it was started too long ago. Start again.',
  })
}
