import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'

export const createWorkspaceKey: OperationCases = {
  cases: [
    ...keyedCases({ method: 'POST', path: '/v1/workspaces/any/keys' }),
    {
      status: 403,
      code: 'dashboard_only',
      when: 'a company key creates a key for its workspace',
      send: ({ call, tenants: { owner } }) =>
        call('POST', `/v1/workspaces/${owner.workspace.id}/keys`, { key: owner.companyKey }),
    },
  ],
}
