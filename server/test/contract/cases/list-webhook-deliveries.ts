import { companyCases } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { ownWebhook, withWebhook } from '../own-webhook.ts'

export const listWebhookDeliveries: OperationCases = {
  cases: [
    ...companyCases({ method: 'GET', path: '/v1/webhooks/any/deliveries' }),
    {
      status: 200,
      when: 'the webhook has deliveries',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          await world.call('POST', `${path}/test`, { key })
          return await world.call('GET', `${path}/deliveries`, { key })
        }),
    },
    {
      status: 200,
      when: 'a company key pages from a sequence',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          for (const target of [path, path, path]) {
            await world.call('POST', `${target}/test`, { key })
          }
          const page = `${path}/deliveries?limit=1&afterSequence=1`
          const { json } = await world.call('GET', page, { key })
          const cursor = encodeURIComponent(json.nextCursor)
          return await world.call('GET', `${page}&cursor=${cursor}`, { key })
        }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the limit is out of bounds',
      send: ({ call, tenants: { owner } }) =>
        call('GET', '/v1/webhooks/any/deliveries?limit=201', { key: owner.companyKey }),
    },
    {
      status: 400,
      code: 'invalid_cursor',
      when: 'the cursor is invalid',
      send: async (world) => {
        const { owner } = world.tenants
        const path = `/v1/webhooks/${await ownWebhook(world, owner)}/deliveries?cursor=bogus`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
  ],
}
