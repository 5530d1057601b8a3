import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'

const PATH = '/v1/workspaces'

export const listWorkspaces: OperationCases = {
  cases: [
    ...keyedCases({ method: 'GET', path: PATH }),
    {
      status: 200,
      when: 'a company key lists the workspaces',
      send: ({ call, tenants: { owner } }) => call('GET', PATH, { key: owner.companyKey }),
    },
    {
      status: 200,
      when: 'a workspace key lists its workspace',
      send: ({ call, tenants: { owner } }) => call('GET', PATH, { key: owner.workspaceKey }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?unknown=1`, { key: owner.companyKey }),
    },
  ],
}
