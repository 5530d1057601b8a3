import type { OperationCases } from '../driver.ts'
import { exportBodyCases } from '../export-body-cases.ts'
import { EXPORT_BODY as body } from '../own-export.ts'

const PATH = '/v1/exports/preflight'

export const preflightExport: OperationCases = {
  body,
  cases: [
    ...exportBodyCases(PATH),
    {
      status: 200,
      when: 'a workspace key sets only required fields',
      send: ({ call, tenants: { owner } }) => call('POST', PATH, { key: owner.workspaceKey, body }),
    },
    {
      status: 200,
      when: 'a company key filters by workspace',
      send: ({ call, tenants: { owner } }) => {
        const filters = { workspaceId: owner.workspace.id, category: 'contract' }
        return call('POST', PATH, { key: owner.companyKey, body: { ...body, filters } })
      },
    },
  ],
}
