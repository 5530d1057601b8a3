import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'
import { ownEvent } from '../own-event.ts'

const PATH = '/v1/events/any'

export const getEvent: OperationCases = {
  cases: [
    ...keyedCases({ method: 'GET', path: PATH }),
    {
      status: 200,
      when: 'a workspace key requests its event',
      send: async (world) => {
        const { owner } = world.tenants
        const path = `/v1/events/${await ownEvent(world, owner)}`
        return await world.call('GET', path, { key: owner.workspaceKey })
      },
    },
    {
      status: 200,
      when: 'a company key requests an event of a workspace',
      send: async (world) => {
        const { owner } = world.tenants
        const path = `/v1/events/${await ownEvent(world, owner)}`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${PATH}?unknown=1`, { key: owner.workspaceKey }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the event is another company’s',
      send: async (world) => {
        const { owner, stranger } = world.tenants
        const path = `/v1/events/${await ownEvent(world, stranger)}`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
  ],
}
