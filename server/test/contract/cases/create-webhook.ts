import type { Answer } from '../../harness/start-app.ts'
import { afterTheRateLimit } from '../after-the-rate-limit.ts'
import { companyCases, companyKeyOf } from '../company-cases.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import type { World } from '../world.ts'

/** Good in every deployment; only used where no webhook comes of it. */
const body = { url: 'https://receiver.example/hook' }
const REQUEST = { method: 'POST', path: '/v1/workspaces/any/webhooks', body }
const WEBHOOKS_MAX = 50

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
          secretLabel: 'contract',
          customSecret: 'a secret of our own',
        }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the destination is refused',
      send: ({ ask, tenants: { owner } }) =>
        ask('POST', pathOf(owner), { key: owner.companyKey, body: { url: 'ftp://127.0.0.1/' } }),
    },
    {
      status: 400,
      code: 'unknown_project',
      when: 'the project is another company’s',
      send: ({ ask, tenants: { owner, stranger } }) =>
        ask('POST', pathOf(owner), {
          key: owner.companyKey,
          body: { ...body, projectId: stranger.project.id },
        }),
    },
    {
      status: 403,
      code: 'plan_required',
      when: 'the plan has no webhooks',
      send: ({ ask, tenants: { free } }) =>
        afterTheRateLimit(() => ask('POST', pathOf(free), { key: free.companyKey, body })),
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

async function create({ ask, tenants: { owner }, receiverUrl }: World, fields: object) {
  const options = { url: receiverUrl, ...fields }
  return await ask('POST', pathOf(owner), { key: owner.companyKey, body: options })
}

async function createAndDelete(world: World, fields: object): Promise<Answer> {
  const answer = await create(world, fields)
  await remove(world, [answer])
  return answer
}

async function fillUp(world: World): Promise<Answer> {
  const made: Answer[] = []
  for (;;) {
    const answer = await create(world, {})
    if (answer.status === 201) made.push(answer)
    if (answer.status === 201 && made.length <= WEBHOOKS_MAX) continue
    await remove(world, made)
    return answer
  }
}

async function remove({ ask, tenants: { owner } }: World, made: readonly Answer[]): Promise<void> {
  for (const { json } of made) {
    await ask('DELETE', `/v1/webhooks/${json.id}`, { key: owner.companyKey })
  }
}
