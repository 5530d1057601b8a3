import { companyCases } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { ownDelivery, ownWebhook } from '../own-webhook.ts'

export const getWebhookDelivery: OperationCases = {
  cases: [
    ...companyCases({ method: 'GET', path: '/v1/webhooks/any/deliveries/any' }),
    {
      status: 200,
      when: 'it is a delivery of the company’s webhook',
      send: async (world) => {
        const { owner } = world.tenants
        const deliveryId = await ownDelivery(world, owner)
        const path = `/v1/webhooks/${await ownWebhook(world, owner)}/deliveries/${deliveryId}`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
  ],
}
