import type { OperationCases } from '../driver.ts'
import { bodyCases, keyedCases } from '../keyed-cases.ts'

const PATH = '/v1/events/batch'
const event = { category: 'contract', action: 'tested' }
const body = { events: [event] }
const REQUEST = { method: 'POST', path: PATH, body }

export const createEventBatch: OperationCases = {
  body,
  cases: [
    ...keyedCases(REQUEST),
    ...bodyCases(REQUEST),
    {
      status: 200,
      when: 'the batch mixes new, replayed, conflicting and invalid events',
      send: ({ call, tenants: { owner } }) => {
        const replayed = { ...event, idempotencyKey: `batch-${process.pid}` }
        const other = { ...replayed, action: 'other' }
        const events = [event, replayed, replayed, other, { ...event, category: '' }]
        return call('POST', PATH, { key: owner.workspaceKey, body: { events } })
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'it has an idempotency key header',
      send: ({ call, tenants: { owner } }) =>
        call('POST', PATH, {
          key: owner.workspaceKey,
          body,
          headers: { 'idempotency-key': 'k' },
        }),
    },
    {
      status: 403,
      code: 'insufficient_scope',
      when: 'a company key sends events',
      send: ({ call, tenants: { owner } }) => call('POST', PATH, { key: owner.companyKey, body }),
    },
  ],
}
