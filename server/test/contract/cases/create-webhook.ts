import type { TestResponse } from '../../harness/app/start-app.ts'
import { afterRateLimit } from '../after-rate-limit.ts'
import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import type { World } from '../world.ts'

/** Valid in every deployment. Used only where no webhook is created. */
const body = { url: 'https://receiver.example/hook' }
const REQUEST = { method: 'POST', path: '/v1/workspaces/any/webhooks', body }
const WEBHOOKS_MAX = 50
const FILTER = {
  categories: ['billing'],
  actions: ['invoice.*'],
  actorIds: ['*'],
  resourceTypes: ['invoice'],
}

export const createWebhook: OperationCases = {
  body,
  cases: [
    ...companyCases(REQUEST),
    ...bodyCases(REQUEST, companyKeyOf),
    {
      status: 201,
      when: 'only a URL is set',
      send: (world) => createAndDelete(world, {}),
    },
    {
      status: 201,
      when: 'all fields are set',
      send: (world) =>
        createAndDelete(world, {
          events: ['AUDIT_EVENT_CREATED'],
          projectId: world.tenants.owner.project.id,
          filter: FILTER,
          name: 'Contract',
          headers: { 'X-Access-Token': 'letmein' },
          secretLabel: 'contract',
          customSecret: 'a secret of our own',
        }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the destination is refused',
      send: ({ call, tenants: { owner } }) =>
        call('POST', pathOf(owner), { key: owner.companyKey, body: { url: 'ftp://127.0.0.1/' } }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a header is reserved',
      send: ({ call, tenants: { owner } }) =>
        call('POST', pathOf(owner), {
          key: owner.companyKey,
          body: { ...body, headers: { host: 'elsewhere.example' } },
        }),
    },
    {
      status: 400,
      code: 'unknown_project',
      when: 'the project is another company’s',
      send: ({ call, tenants: { owner, stranger } }) =>
        call('POST', pathOf(owner), {
          key: owner.companyKey,
          body: { ...body, projectId: stranger.project.id },
        }),
    },
    {
      status: 403,
      code: 'plan_required',
      when: 'the plan has no webhooks',
      send: ({ call, tenants: { free } }) =>
        afterRateLimit(() => call('POST', pathOf(free), { key: free.companyKey, body })),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the workspace has reached its webhook limit',
      send: fillUp,
    },
  ],
}

function pathOf({ workspace }: { workspace: { id: string } }): string {
  return `/v1/workspaces/${workspace.id}/webhooks`
}

async function create({ call, tenants: { owner }, receiverUrl }: World, fields: object) {
  const options = { url: receiverUrl, ...fields }
  return await call('POST', pathOf(owner), { key: owner.companyKey, body: options })
}

async function createAndDelete(world: World, fields: object): Promise<TestResponse> {
  const response = await create(world, fields)
  await remove(world, [response])
  return response
}

async function fillUp(world: World): Promise<TestResponse> {
  const made: TestResponse[] = []
  for (;;) {
    const response = await create(world, {})
    if (response.status === 201) made.push(response)
    if (response.status === 201 && made.length <= WEBHOOKS_MAX) continue
    await remove(world, made)
    return response
  }
}

async function remove(
  { call, tenants: { owner } }: World,
  made: readonly TestResponse[],
): Promise<void> {
  for (const { json } of made) {
    await call('DELETE', `/v1/webhooks/${json.id}`, { key: owner.companyKey })
  }
}
