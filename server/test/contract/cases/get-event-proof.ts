import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'
import { ownEvent } from '../own-event.ts'
import { beforeSigned, untilSigned } from '../signed-cases.ts'

const PATH = '/v1/events/any/proof'

export const getEventProof: OperationCases = {
  cases: [
    ...keyedCases({ method: 'GET', path: PATH }),
    {
      status: 200,
      when: 'the event is signed',
      send: async (world) => {
        const { owner } = world.tenants
        const path = `/v1/events/${await ownEvent(world, owner)}/proof`
        return await untilSigned(() => world.call('GET', path, { key: owner.workspaceKey }))
      },
    },
    {
      status: 200,
      when: 'text is requested',
      send: async (world) => {
        const { owner } = world.tenants
        const path = `/v1/events/${await ownEvent(world, owner)}/proof`
        const options = { key: owner.companyKey, headers: { accept: 'text/plain' } }
        return await untilSigned(() => world.call('GET', path, options))
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
        const path = `/v1/events/${await ownEvent(world, stranger)}/proof`
        return await world.call('GET', path, { key: owner.companyKey })
      },
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the event is not signed yet',
      send: (world) => beforeSigned(world, (id) => `/v1/events/${id}/proof`),
    },
  ],
}
