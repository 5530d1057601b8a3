import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'

const PATH = '/v1/events'

export const listEvents: OperationCases = {
  cases: [
    ...keyedCases({ method: 'GET', path: PATH }),
    {
      status: 200,
      when: 'a workspace key lists its events',
      send: async ({ call, tenants: { owner } }) => {
        const body = { category: 'contract', action: 'listed', actor: { id: 'u1' } }
        await call('POST', PATH, { key: owner.workspaceKey, body })
        return await call('GET', `${PATH}?action=listed`, { key: owner.workspaceKey })
      },
    },
    {
      status: 200,
      when: 'a company key pages through one workspace',
      send: async ({ call, tenants: { owner } }) => {
        const key = owner.companyKey
        for (const action of ['paged', 'paged']) {
          await call('POST', PATH, { key: owner.workspaceKey, body: { category: 'x', action } })
        }
        const page = `${PATH}?limit=1&action=paged&workspaceId=${owner.workspace.id}`
        const { json } = await call('GET', page, { key })
        return await call('GET', `${page}&cursor=${encodeURIComponent(json.nextCursor)}`, { key })
      },
    },
    {
      status: 200,
      when: 'a list of categories and actions, a range and an order are requested',
      send: async ({ call, tenants: { owner } }) => {
        const query = [
          'category=contract&category=x&action=listed&action=paged&order=asc',
          'receivedFrom=2020-01-01T00:00:00Z&receivedTo=2100-01-01T00:00:00Z',
          `seqFrom=1&seqTo=1000&traceId=${'0'.repeat(32)}`,
        ]
        return await call('GET', `${PATH}?${query.join('&')}`, { key: owner.workspaceKey })
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a company key sends a sequence number without a workspace',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?seqFrom=1`, { key: owner.companyKey }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the limit is out of bounds',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?limit=201`, { key: owner.workspaceKey }),
    },
    {
      status: 400,
      code: 'invalid_cursor',
      when: 'the cursor is invalid',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?cursor=bogus`, { key: owner.workspaceKey }),
    },
    {
      status: 403,
      code: 'insufficient_scope',
      when: 'a workspace key names a workspace',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?workspaceId=${owner.workspace.id}`, { key: owner.workspaceKey }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the workspace is another company’s',
      send: ({ call, tenants: { owner, stranger } }) =>
        call('GET', `${PATH}?workspaceId=${stranger.workspace.id}`, { key: owner.companyKey }),
    },
  ],
}
