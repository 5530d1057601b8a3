import { companyCases } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { ownWebhook } from '../own-webhook.ts'

export const getWebhook: OperationCases = {
  cases: [
    ...companyCases({ method: 'GET', path: '/v1/webhooks/any' }),
    {
      status: 200,
      when: 'a company key requests a webhook of its company',
      send: async (world) => {
        const { owner } = world.tenants
        const path = `/v1/webhooks/${await ownWebhook(world, owner)}`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
  ],
}
