import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withWebhook } from '../own-webhook.ts'

const body = {}
const REQUEST = { method: 'POST', path: '/v1/webhooks/any/rotate-secret', body }

export const rotateWebhookSecret: OperationCases = {
  body,
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 200,
      when: 'there is no body',
      send: (world) =>
        withWebhook(world, (path, key) => world.call('POST', `${path}/rotate-secret`, { key })),
    },
    {
      status: 200,
      when: 'the overlap is 0',
      send: (world) =>
        withWebhook(world, (path, key) =>
          world.call('POST', `${path}/rotate-secret`, {
            key,
            body: { customSecret: 'another secret', secretLabel: 'new', overlapSeconds: 0 },
          }),
        ),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'a rotation is in progress',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          await world.call('POST', `${path}/rotate-secret`, { key, body })
          return await world.call('POST', `${path}/rotate-secret`, { key, body })
        }),
    },
  ],
}
