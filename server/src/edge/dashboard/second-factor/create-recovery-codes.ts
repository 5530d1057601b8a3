import { Type } from 'typebox'
import { replaceRecoveryHashes } from '../../../tenancy/sign-in/second-factor-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { FactorCode, RecoveryCodes } from '../../schema/dashboard/second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import {
  checkOwnPassword,
  createRecoveryCodeSet,
  lockOwnAccount,
  OwnPassword,
  useOwnFactor,
  withOwnFactor,
} from './own-factor.ts'

/** POST /dashboard/second-factor/recovery-codes: replaces the recovery codes. */
export const createRecoveryCodes = defineRoute({
  method: 'POST',
  path: '/dashboard/second-factor/recovery-codes',
  member: 'self.manage',
  summary: 'Create new recovery codes',
  description: 'Replaces all recovery codes of the signed-in member. The old ones stop working.',
  body: Type.Object({ currentPassword: OwnPassword, code: FactorCode }, STRICT),
  errors: ['conflict'],
  response: { 201: RecoveryCodes },
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'login' | 'factorBox'>) => async (request) => {
      const { viewer, body } = request
      const { userId } = viewer
      const passwordHash = await checkOwnPassword(deps, request, body.currentPassword)
      const { recoveryCodes, recoveryHashes } = createRecoveryCodeSet()
      await withOwnFactor(deps, request, () =>
        audited(deps, actorOf(request), async (trx, record) => {
          await lockOwnAccount(trx, request, passwordHash)
          await useOwnFactor(deps, trx, request, body.code)
          await replaceRecoveryHashes(trx, { userId, recoveryHashes })
          record({ action: 'RECOVERY_CODES_CREATED', resource: { type: 'user', id: userId } })
        }),
      )
      return { recoveryCodes }
    },
})
