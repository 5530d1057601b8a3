import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import { requiresSecondFactor, setSecondFactorRequired } from '../../../tenancy/company-store.ts'
import { findSecondFactor } from '../../../tenancy/sign-in/second-factor-store.ts'
import { defineRoute } from '../../define-route.ts'
import { CompanyRecord } from '../../schema/dashboard/company.ts'
import { STRICT } from '../../schema/common.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { companyRecord } from './get-company.ts'

/** PUT /dashboard/company/sign-in: how the members of the company have to sign in. */
export const replaceSignInRules = defineRoute({
  method: 'PUT',
  path: '/dashboard/company/sign-in',
  member: 'security.manage',
  summary: 'Replace the sign-in rules',
  description:
    "If a second factor is required, members without one can only set one up, also in sessions that are already open. Takes effect on each member's next request. Only an OWNER with a second factor can require it.",
  body: Type.Object(
    {
      requiresSecondFactor: Type.Boolean({
        description: 'Whether every member must have a second factor.',
      }),
    },
    { ...STRICT, description: 'The new sign-in rules.' },
  ),
  errors: ['conflict'],
  response: CompanyRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'hasRateLimits'>) => async (request, reply) => {
      const { viewer, body } = request
      const { companyId, userId } = viewer
      await audited(deps, actorOf(request), async (trx, record) => {
        const present = { requiresSecondFactor: await requiresSecondFactor(trx, companyId) }
        const changed = changedFields(present, body)
        if (!changed) return
        if (body.requiresSecondFactor && !(await findSecondFactor(trx, userId)))
          throw noOwnFactorError()
        await setSecondFactorRequired(trx, { companyId, isRequired: body.requiresSecondFactor })
        const resource = { type: 'company', id: companyId }
        record({ action: 'COMPANY_CHANGED', resource, metadata: changed })
      })
      return await companyRecord(deps, request, reply)
    },
})

function noOwnFactorError(): ApiError {
  return new ApiError('conflict', {
    message: 'Set up your own second factor before you require one of all members.',
  })
}
