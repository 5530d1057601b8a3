import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withDisabledWebhook, withWebhook } from '../own-webhook.ts'

const REQUEST = { method: 'POST', path: '/v1/webhooks/any/disable' }

export const disableWebhook: OperationCases = {
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 200,
      when: 'it is enabled',
      send: (world) =>
        withWebhook(world, (path, key) => world.call('POST', `${path}/disable`, { key })),
    },
    {
      status: 200,
      when: 'it is disabled',
      send: (world) =>
        withDisabledWebhook(world, (path, key) => world.call('POST', `${path}/disable`, { key })),
    },
  ],
}
