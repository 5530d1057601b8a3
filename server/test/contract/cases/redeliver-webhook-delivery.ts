import assert from 'node:assert/strict'
import { eventually } from '../../harness/timing/eventually.ts'
import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withWebhook } from '../own-webhook.ts'
import type { World } from '../world.ts'

const REQUEST = { method: 'POST', path: '/v1/webhooks/any/deliveries/any/redeliver' }

export const redeliverWebhookDelivery: OperationCases = {
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 202,
      when: 'an attempt was made',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          const delivery = await attemptedDelivery(world, path, key)
          return await world.call('POST', `${delivery}/redeliver`, { key })
        }),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the webhook is disabled',
      send: (world) =>
        withWebhook(world, async (path, key) => {
          const delivery = await attemptedDelivery(world, path, key)
          await world.call('POST', `${path}/disable`, { key })
          return await world.call('POST', `${delivery}/redeliver`, { key })
        }),
    },
  ],
}

/** Sends a test delivery that no receiver accepts, and returns its path. */
async function attemptedDelivery({ call }: World, webhook: string, key: string): Promise<string> {
  const { json } = await call('POST', `${webhook}/test`, { key })
  const path = `${webhook}/deliveries/${json.deliveryId}`
  await eventually(async () => {
    const { status } = (await call('GET', path, { key })).json
    assert(status !== 'PENDING' && status !== 'SENDING', status)
  })
  return path
}
