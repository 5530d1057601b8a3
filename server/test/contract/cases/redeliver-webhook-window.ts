import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withDisabledWebhook, withWebhook } from '../own-webhook.ts'

const HOUR_MS = 3_600_000
const now = Date.now()
const body = {
  from: new Date(now - HOUR_MS).toISOString(),
  to: new Date(now + HOUR_MS).toISOString(),
}
const REQUEST = { method: 'POST', path: '/v1/webhooks/any/redeliver', body }

export const redeliverWebhookWindow: OperationCases = {
  body,
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 202,
      when: 'the webhook is enabled',
      send: (world) =>
        withWebhook(world, (path, key) => world.call('POST', `${path}/redeliver`, { key, body })),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the window ends before it begins',
      send: ({ call, tenants: { owner } }) =>
        call('POST', REQUEST.path, {
          key: owner.companyKey,
          body: { from: body.to, to: body.from },
        }),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the webhook is disabled',
      send: (world) =>
        withDisabledWebhook(world, (path, key) =>
          world.call('POST', `${path}/redeliver`, { key, body }),
        ),
    },
  ],
}
