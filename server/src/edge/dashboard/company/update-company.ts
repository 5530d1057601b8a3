import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { readCompanyDetails, lockCompany, renameCompany } from '../../../tenancy/company-store.ts'
import { CompanyRecord, NameInput } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../audit.ts'
import { changedFields } from '../changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../name-input.ts'
import { companyRecord } from './get-company.ts'

/** PATCH /dashboard/company: renames the company. */
export const updateCompany =
  (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn' | 'hasRateLimits'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.patch(
      '/dashboard/company',
      {
        ...deps.signedIn('company.manage'),
        schema: {
          operationId: 'updateCompany',
          summary: 'Rename the company',
          description: 'Changes the name of the company.',
          tags: ['Company'],
          body: NameInput,
          response: { 200: CompanyRecord },
        },
      },
      async (request) => {
        const { viewer, body, clientAddress } = request
        const { companyId } = viewer
        const name = readName(body.name)
        await audited(deps, actorOf(request), async (trx, note) => {
          await lockCompany(trx, companyId)
          const { name: present } = await readCompanyDetails(trx, companyId)
          const changed = changedFields({ name: present }, { name })
          if (!changed) return
          await renameCompany(trx, { companyId, name })
          note({
            action: 'COMPANY_CHANGED',
            resource: { type: 'company', id: companyId },
            metadata: changed,
          })
        })
        return await companyRecord(deps, viewer, clientAddress)
      },
    )
  }
