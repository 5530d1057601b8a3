import { requiresSecondFactor } from '../../../tenancy/company-store.ts'
import { findSecondFactor } from '../../../tenancy/sign-in/second-factor-store.ts'
import { defineRoute } from '../../define-route.ts'
import { SecondFactorRecord } from '../../schema/dashboard/second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** GET /dashboard/second-factor: whether the member has a second factor. */
export const getSecondFactor = defineRoute({
  method: 'GET',
  path: '/dashboard/second-factor',
  member: 'self.enroll',
  summary: 'Get your second factor',
  description: 'Returns whether the signed-in member has a second factor.',
  response: SecondFactorRecord,
  handle:
    ({ db }: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer: { userId, companyId } }) => {
      const factor = await findSecondFactor(db, userId)
      return {
        enabledAt: factor?.enabledAt.toISOString() ?? null,
        recoveryCodesLeft: factor?.recoveryCodesLeft ?? 0,
        isRequired: await requiresSecondFactor(db, companyId),
      }
    },
})
