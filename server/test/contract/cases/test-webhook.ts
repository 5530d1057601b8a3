import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withDisabledWebhook, withWebhook } from '../own-webhook.ts'

const REQUEST = { method: 'POST', path: '/v1/webhooks/any/test' }

export const testWebhook: OperationCases = {
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 202,
      when: 'the webhook is enabled',
      send: (world) =>
        withWebhook(world, (path, key) => world.call('POST', `${path}/test`, { key })),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the webhook is disabled',
      send: (world) =>
        withDisabledWebhook(world, (path, key) => world.call('POST', `${path}/test`, { key })),
    },
  ],
}
