import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { requiresSecondFactor } from '../../../tenancy/company-store.ts'
import { deleteSecondFactor } from '../../../tenancy/sign-in/second-factor-store.ts'
import { deleteChallenges } from '../../../tenancy/sign-in/sign-in-challenge-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { FactorCode } from '../../schema/dashboard/second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import {
  checkOwnPassword,
  lockOwnAccount,
  OwnPassword,
  useOwnFactor,
  withOwnFactor,
} from './own-factor.ts'

/** POST /dashboard/second-factor/disable: signing in requires only the password again. */
export const disableSecondFactor = defineRoute({
  method: 'POST',
  path: '/dashboard/second-factor/disable',
  member: 'self.manage',
  summary: 'Turn off your second factor',
  description:
    'Deletes the secret and the recovery codes of the signed-in member. Refused while the company requires a second factor.',
  body: Type.Object({ currentPassword: OwnPassword, code: FactorCode }, STRICT),
  errors: ['conflict'],
  response: { 204: Type.Null({ description: 'The second factor is off.' }) },
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'login' | 'factorBox'>) => async (request) => {
      const { viewer, body } = request
      const { userId, companyId } = viewer
      const passwordHash = await checkOwnPassword(deps, request, body.currentPassword)
      await withOwnFactor(deps, request, () =>
        audited(deps, actorOf(request), async (trx, record) => {
          if (await requiresSecondFactor(trx, companyId)) throw requiredByCompanyError()
          await lockOwnAccount(trx, request, passwordHash)
          await useOwnFactor(deps, trx, request, body.code)
          await deleteSecondFactor(trx, userId)
          await deleteChallenges(trx, userId)
          record({ action: 'SECOND_FACTOR_DISABLED', resource: { type: 'user', id: userId } })
        }),
      )
      return null
    },
})

function requiredByCompanyError(): ApiError {
  return new ApiError('conflict', {
    message: "Your company requires a second factor, so you can't turn it off.",
  })
}
