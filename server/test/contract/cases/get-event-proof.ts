import type { OperationCases } from '../driver.ts'
import { eventCases } from '../event-cases.ts'
import { ownEvent } from '../own-event.ts'
import { beforeSigned, untilSigned } from '../signed-cases.ts'

const pathOf = (eventId: string) => `/v1/events/${eventId}/proof`

export const getEventProof: OperationCases = {
  cases: [
    ...eventCases(pathOf),
    {
      status: 200,
      when: 'the event is signed',
      send: async (world) => {
        const { owner } = world.tenants
        const path = pathOf(await ownEvent(world, owner))
        return await untilSigned(() => world.call('GET', path, { key: owner.workspaceKey }))
      },
    },
    {
      status: 200,
      when: 'text is requested',
      send: async (world) => {
        const { owner } = world.tenants
        const path = pathOf(await ownEvent(world, owner))
        const options = { key: owner.companyKey, headers: { accept: 'text/plain' } }
        return await untilSigned(() => world.call('GET', path, options))
      },
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the event is not signed yet',
      send: (world) => beforeSigned(world, pathOf),
    },
  ],
}
