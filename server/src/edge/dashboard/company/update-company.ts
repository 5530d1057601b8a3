import { readCompanyDetails, renameCompany } from '../../../tenancy/company-store.ts'
import { defineRoute } from '../../define-route.ts'
import { CompanyRecord, NameInput } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { companyRecord } from './get-company.ts'

/** PATCH /dashboard/company: renames the company. */
export const updateCompany = defineRoute({
  method: 'PATCH',
  path: '/dashboard/company',
  member: 'company.manage',
  summary: 'Rename the company',
  description: 'Changes the name of the company.',
  body: NameInput,
  response: CompanyRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'hasRateLimits'>) => async (request, reply) => {
      const { viewer, body } = request
      const { companyId } = viewer
      const name = readName(body.name)
      await audited(deps, actorOf(request), async (trx, record) => {
        const { name: present } = await readCompanyDetails(trx, companyId)
        const changed = changedFields({ name: present }, { name })
        if (!changed) return
        await renameCompany(trx, { companyId, name })
        record({
          action: 'COMPANY_CHANGED',
          resource: { type: 'company', id: companyId },
          metadata: changed,
        })
      })
      return await companyRecord(deps, request, reply)
    },
})
