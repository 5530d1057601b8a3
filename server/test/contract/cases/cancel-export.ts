import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { jobCases, withExport, withFinishedExport } from '../own-export.ts'

const REQUEST = { method: 'POST', path: '/v1/exports/any/cancel' }

export const cancelExport: OperationCases = {
  cases: [
    ...jobCases(REQUEST),
    ...bodyCases(REQUEST),
    {
      status: 200,
      when: 'it is open',
      send: (world) =>
        withExport(world, (path, key) => world.call('POST', `${path}/cancel`, { key })),
    },
    {
      status: 200,
      when: 'it was canceled before',
      send: (world) =>
        withExport(world, async (path, key) => {
          await world.call('POST', `${path}/cancel`, { key })
          return await world.call('POST', `${path}/cancel`, { key })
        }),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'it has succeeded',
      send: (world) =>
        withFinishedExport(world, (path, key) => world.call('POST', `${path}/cancel`, { key })),
    },
  ],
}
