import assert from 'node:assert/strict'
import { eventually } from '../../harness/timing/eventually.ts'
import type { TestResponse } from '../../harness/app/start-app.ts'
import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withWebhook } from '../own-webhook.ts'
import type { World } from '../world.ts'

const body = { events: ['AUDIT_EVENT_CREATED'] }
const REQUEST = { method: 'PATCH', path: '/v1/webhooks/any', body }

export const updateWebhook: OperationCases = {
  body,
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 200,
      when: 'all fields are set',
      send: (world) =>
        withWebhook(world, (path, key) =>
          world.call('PATCH', path, {
            key,
            body: {
              ...body,
              url: `${world.receiverUrl}/other`,
              projectId: world.tenants.owner.project.id,
              filter: { actions: ['user.*'] },
              name: 'Changed',
              headers: {},
              secretLabel: 'changed',
            },
          }),
        ),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'no field changes',
      send: (world) =>
        withWebhook(world, (path, key) => world.call('PATCH', path, { key, body: {} })),
    },
    {
      status: 400,
      code: 'unknown_project',
      when: 'the project is another company’s',
      send: (world) =>
        withWebhook(world, (path, key) =>
          world.call('PATCH', path, {
            key,
            body: { projectId: world.tenants.stranger.project.id },
          }),
        ),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the filter changes again before earlier events have their deliveries',
      send: (world) => withWebhook(world, (path, key) => changeTwice(world, path, key)),
    },
  ],
}

/** After ten failed attempts, a webhook pauses, so later events wait for their deliveries. */
const FAILURES_BEFORE_PAUSE = 10

async function changeTwice(
  { call, tenants: { owner } }: World,
  path: string,
  key: string,
): Promise<TestResponse> {
  const send = () =>
    call('POST', '/v1/events', {
      key: owner.workspaceKey,
      body: { category: 'billing', action: 'invoice.paid' },
    })
  const change = (filter: object | null) => call('PATCH', path, { key, body: { filter } })
  for (let nth = 0; nth < FAILURES_BEFORE_PAUSE; nth += 1) await send()
  await eventually(async () => {
    const { json } = await call('GET', path, { key })
    assert(json.failureCount >= FAILURES_BEFORE_PAUSE)
  })
  // A pause can end just before the second change.
  return await eventually(async () => {
    await send()
    await change({ actions: ['user.*'] })
    const response = await change(null)
    assert.equal(response.status, 409, response.text)
    return response
  })
}
