import { ApiError } from '../../../errors.ts'
import {
  describeLockout,
  readEntries,
  refuseOwnLockout,
} from '../../../tenancy/allowlist-change.ts'
import * as companyStore from '../../../tenancy/company-store.ts'
import { defineRoute } from '../../define-route.ts'
import { AllowlistInput, CompanyRecord } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { companyRecord } from './get-company.ts'

/** PUT /dashboard/company/allowlist: replaces the list and what it applies to. */
export const replaceAllowlist = defineRoute({
  method: 'PUT',
  path: '/dashboard/company/allowlist',
  member: 'company.manage',
  summary: 'Replace the IP allowlist',
  description:
    'Takes effect on all nodes within two seconds. A list without the address of this request is refused with 409, unless you confirm it. If the list applies to the dashboard, such a list is always refused.',
  body: AllowlistInput,
  errors: ['conflict'],
  response: CompanyRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'hasRateLimits'>) => async (request, reply) => {
      const { viewer, body, clientAddress } = request
      const entries = readEntries(body.entries)
      const { companyId } = viewer
      await audited(deps, actorOf(request), async (trx, record) => {
        const { allowlist: before } = await companyStore.readCompanyDetails(trx, companyId)
        const { forAllCalls, forDashboard = before.forDashboard } = body
        const after = { entries, forAllCalls, forDashboard }
        refuseOwnLockout(clientAddress, after)
        const lockOut = describeLockout(clientAddress, after, viewer.plan)
        if (lockOut !== null && body.confirmAddressLeftOut !== true) {
          throw new ApiError('conflict', { message: lockOut })
        }
        const changed = changedFields(before, after)
        if (!changed) return
        await companyStore.updateAllowlist(trx, companyId, after)
        record({
          action: 'ALLOWLIST_CHANGED',
          resource: { type: 'company', id: companyId },
          metadata: { ...changed, leavesOutCaller: lockOut !== null },
        })
      })
      return await companyRecord(deps, request, reply)
    },
})
