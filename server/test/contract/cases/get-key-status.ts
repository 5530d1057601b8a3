import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'

const REQUEST = { method: 'GET', path: '/v1/keys/status' }

export const getKeyStatus: OperationCases = {
  cases: [
    ...keyedCases(REQUEST),
    {
      status: 200,
      when: 'a workspace key is used',
      send: ({ call, tenants }) => call('GET', REQUEST.path, { key: tenants.owner.workspaceKey }),
    },
    {
      status: 200,
      when: 'a company key is used',
      send: ({ call, tenants }) => call('GET', REQUEST.path, { key: tenants.owner.companyKey }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants }) =>
        call('GET', `${REQUEST.path}?id=1`, { key: tenants.owner.workspaceKey }),
    },
  ],
}
