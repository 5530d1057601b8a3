import type { OperationCases } from '../driver.ts'
import { eventCases } from '../event-cases.ts'
import { ownEvent } from '../own-event.ts'

const pathOf = (eventId: string) => `/v1/events/${eventId}`

export const getEvent: OperationCases = {
  cases: [
    ...eventCases(pathOf),
    {
      status: 200,
      when: 'a workspace key requests its event',
      send: async (world) => {
        const { owner } = world.tenants
        const path = pathOf(await ownEvent(world, owner))
        return await world.call('GET', path, { key: owner.workspaceKey })
      },
    },
    {
      status: 200,
      when: 'a company key requests an event of a workspace',
      send: async (world) => {
        const { owner } = world.tenants
        const path = pathOf(await ownEvent(world, owner))
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
  ],
}
