import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withWebhook } from '../own-webhook.ts'

const REQUEST = { method: 'POST', path: '/v1/webhooks/any/finish-rotation' }

export const finishWebhookRotation: OperationCases = {
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 200,
      when: 'a rotation is in progress',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          await world.call('POST', `${path}/rotate-secret`, { key })
          return await world.call('POST', `${path}/finish-rotation`, { key })
        }),
    },
    {
      status: 200,
      when: 'no rotation is in progress',
      send: (world) =>
        withWebhook(world, (path, key) => world.call('POST', `${path}/finish-rotation`, { key })),
    },
  ],
}
