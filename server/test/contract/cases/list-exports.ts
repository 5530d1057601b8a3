import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'
import { ownExport } from '../own-export.ts'

const PATH = '/v1/exports'

export const listExports: OperationCases = {
  cases: [
    ...keyedCases({ method: 'GET', path: PATH }),
    {
      status: 200,
      when: 'a workspace key is used',
      send: ({ call, tenants: { owner } }) => call('GET', PATH, { key: owner.workspaceKey }),
    },
    {
      status: 200,
      when: 'a company key pages through the list',
      send: async (world) => {
        const { owner } = world.tenants
        await ownExport(world, owner)
        await ownExport(world, owner)
        const key = owner.companyKey
        const { json } = await world.call('GET', `${PATH}?limit=1`, { key })
        const cursor = encodeURIComponent(json.nextCursor)
        return await world.call('GET', `${PATH}?limit=1&cursor=${cursor}`, { key })
      },
    },
    {
      status: 200,
      when: 'filtering by status, page by page',
      send: async (world) => {
        const { owner } = world.tenants
        await ownExport(world, owner)
        await ownExport(world, owner)
        const key = owner.companyKey
        const path = `${PATH}?limit=1&status=PENDING`
        const { json } = await world.call('GET', path, { key })
        return await world.call('GET', `${path}&cursor=${encodeURIComponent(json.nextCursor)}`, {
          key,
        })
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the status is unknown',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?status=DONE`, { key: owner.companyKey }),
    },
    {
      status: 400,
      code: 'invalid_cursor',
      when: 'the cursor belongs to another status',
      send: async (world) => {
        const { owner } = world.tenants
        await ownExport(world, owner)
        await ownExport(world, owner)
        const key = owner.companyKey
        const { json } = await world.call('GET', `${PATH}?limit=1&status=PENDING`, { key })
        const cursor = encodeURIComponent(json.nextCursor)
        return await world.call('GET', `${PATH}?status=FAILED&cursor=${cursor}`, { key })
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the limit is out of bounds',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?limit=201`, { key: owner.companyKey }),
    },
    {
      status: 400,
      code: 'invalid_cursor',
      when: 'the cursor is invalid',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?cursor=bogus`, { key: owner.companyKey }),
    },
  ],
}
