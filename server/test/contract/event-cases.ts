import type { Case } from './driver.ts'
import { keyedCases } from './keyed-cases.ts'
import { ownEvent } from './own-event.ts'

/** Cases for every operation that reads one event. */
export function eventCases(pathOf: (eventId: string) => string): Case[] {
  const path = pathOf('any')
  return [
    ...keyedCases({ method: 'GET', path }),
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${path}?unknown=1`, { key: owner.workspaceKey }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the event is another company’s',
      send: async (world) => {
        const { owner, stranger } = world.tenants
        const foreign = pathOf(await ownEvent(world, stranger))
        return await world.call('GET', foreign, { key: owner.companyKey })
      },
    },
  ]
}
