import { randomUUID } from 'node:crypto'
import type { OperationCases } from '../driver.ts'
import { bodyCases, keyedCases } from '../keyed-cases.ts'

const PATH = '/v1/events'
const body = { category: 'contract', action: 'tested' }
const REQUEST = { method: 'POST', path: PATH, body }

export const createEvent: OperationCases = {
  body,
  cases: [
    ...keyedCases(REQUEST),
    ...bodyCases(REQUEST),
    {
      status: 201,
      when: 'the event is new',
      send: ({ call, tenants: { owner } }) => call('POST', PATH, { key: owner.workspaceKey, body }),
    },
    {
      status: 201,
      when: 'all fields are set',
      send: ({ call, tenants: { owner } }) =>
        call('POST', PATH, {
          key: owner.workspaceKey,
          body: {
            ...body,
            timestamp: '2026-03-01T12:00:00.123+01:00',
            projectId: owner.project.id,
            actor: { id: 'u1', email: 'u1@example.com', role: 'admin' },
            resource: { type: 'invoice', id: 'i1' },
            metadata: { nested: [1, { deep: true }] },
            idempotencyKey: randomUUID(),
          },
        }),
    },
    {
      status: 200,
      when: 'the idempotency key names a stored event',
      send: async ({ call, tenants: { owner } }) => {
        const replayed = { ...body, idempotencyKey: randomUUID() }
        await call('POST', PATH, { key: owner.workspaceKey, body: replayed })
        return await call('POST', PATH, { key: owner.workspaceKey, body: replayed })
      },
    },
    {
      status: 200,
      when: 'the key in the header names a stored event',
      send: async ({ call, tenants: { owner } }) => {
        const headers = { 'idempotency-key': randomUUID() }
        await call('POST', PATH, { key: owner.workspaceKey, body, headers })
        return await call('POST', PATH, { key: owner.workspaceKey, body, headers })
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the keys in the header and in the body are different',
      send: ({ call, tenants: { owner } }) =>
        call('POST', PATH, {
          key: owner.workspaceKey,
          body: { ...body, idempotencyKey: randomUUID() },
          headers: { 'idempotency-key': randomUUID() },
        }),
    },
    {
      status: 400,
      code: 'unknown_project',
      when: 'the project is another company’s',
      send: ({ call, tenants: { owner, stranger } }) =>
        call('POST', PATH, {
          key: owner.workspaceKey,
          body: { ...body, projectId: stranger.project.id },
        }),
    },
    {
      status: 403,
      code: 'insufficient_scope',
      when: 'a company key sends an event',
      send: ({ call, tenants: { owner } }) => call('POST', PATH, { key: owner.companyKey, body }),
    },
  ],
}
