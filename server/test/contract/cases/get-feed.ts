import type { OperationCases } from '../driver.ts'
import { ownEvent } from '../own-event.ts'
import type { World } from '../world.ts'
import { workspaceCases } from '../workspace-cases.ts'

const feed = ({ call, tenants: { owner } }: World, query: string) =>
  call('GET', `/v1/workspaces/${owner.workspace.id}/feed?${query}`, { key: owner.workspaceKey })

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
