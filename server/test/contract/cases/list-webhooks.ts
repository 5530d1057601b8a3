import { companyCases } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { ownWebhook } from '../own-webhook.ts'

export const listWebhooks: OperationCases = {
  cases: [
    ...companyCases({ method: 'GET', path: '/v1/workspaces/any/webhooks' }),
    {
      status: 200,
      when: 'a company key lists the webhooks of a workspace',
      send: async (world) => {
        const { owner } = world.tenants
        await ownWebhook(world, owner)
        const path = `/v1/workspaces/${owner.workspace.id}/webhooks`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
  ],
}
