import type { OperationCases } from '../driver.ts'
import { workspaceCases } from '../workspace-cases.ts'

export const listEventTypes: OperationCases = {
  cases: [
    ...workspaceCases('/event-types'),
    {
      status: 400,
      code: 'invalid_request',
      when: 'the limit is out of bounds',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `/v1/workspaces/${owner.workspace.id}/event-types?limit=101`, {
          key: owner.companyKey,
        }),
    },
    {
      status: 400,
      code: 'invalid_cursor',
      when: 'the cursor is invalid',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `/v1/workspaces/${owner.workspace.id}/event-types?cursor=bogus`, {
          key: owner.companyKey,
        }),
    },
  ],
}
