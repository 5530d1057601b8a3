import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { withWebhook } from '../own-webhook.ts'

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
  ],
}
