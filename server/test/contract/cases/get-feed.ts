import type { OperationCases } from '../driver.ts'
import { ownEvent } from '../own-event.ts'
import type { Tenant, World } from '../world.ts'
import { workspaceCases } from '../workspace-cases.ts'

const feed = ({ call, tenants: { owner } }: World, query: string, tenant: Tenant = owner) =>
  call('GET', `/v1/workspaces/${tenant.workspace.id}/feed?${query}`, { key: tenant.workspaceKey })

const WAITING_MAX = 10

export const getFeed: OperationCases = {
  cases: [
    ...workspaceCases('/feed'),
    {
      status: 200,
      when: 'all parameters are sent and there are events',
      send: async (world) => {
        await ownEvent(world, world.tenants.owner)
        return await feed(world, 'after=0&limit=1000&waitSeconds=30')
      },
    },
    {
      status: 200,
      when: 'it waits for an event that is sent meanwhile',
      send: async (world) => {
        const { owner } = world.tenants
        const { json } = await feed(world, `after=${await endOf(world)}`)
        const waiting = feed(world, `after=${json.next}&waitSeconds=30`)
        await ownEvent(world, owner)
        return await waiting
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a number is out of bounds',
      send: (world) => feed(world, 'waitSeconds=31'),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'the position is beyond the last event',
      send: (world) => feed(world, 'after=999999999999999'),
    },
    {
      status: 403,
      code: 'plan_required',
      when: 'the next event is archived and the plan has no exports',
      send: (world) => {
        const { archived } = world.tenants
        return archived ? feed(world, 'after=0', archived) : null
      },
    },
    {
      status: 429,
      code: 'rate_limited',
      when: 'the key already has ten waiting requests',
      send: async (world) => {
        const query = `after=${await endOf(world)}&waitSeconds=30`
        const waiting = Array.from({ length: WAITING_MAX + 1 }, () => feed(world, query))
        // The others wait for an event.
        const refused = await Promise.race(waiting)
        await ownEvent(world, world.tenants.owner)
        await Promise.all(waiting)
        return refused
      },
    },
    {
      status: 503,
      code: 'archive_restoring',
      when: 'the file with the next event has to be restored',
      send: (world) => {
        const { frozen } = world.tenants
        return frozen ? feed(world, 'after=0', frozen) : null
      },
    },
  ],
}

async function endOf(world: World): Promise<number> {
  let next = 0
  for (;;) {
    const { json } = await feed(world, `after=${next}&limit=1000`)
    if (json.data.length === 0) return next
    next = json.next
  }
}
