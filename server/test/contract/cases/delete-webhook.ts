import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withWebhook } from '../own-webhook.ts'

const REQUEST = { method: 'DELETE', path: '/v1/webhooks/any' }

export const deleteWebhook: OperationCases = {
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 204,
      when: 'the webhook is the company’s',
      send: (world) => withWebhook(world, (path, key) => world.call('DELETE', path, { key })),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'it was deleted before',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          await world.call('DELETE', path, { key })
          return await world.call('DELETE', path, { key })
        }),
    },
  ],
}
