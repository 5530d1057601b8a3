import type { OperationCases } from '../driver.ts'
import { jobCases, withExport, withFinishedExport } from '../own-export.ts'

export const getExport: OperationCases = {
  cases: [
    ...jobCases({ method: 'GET', path: '/v1/exports/any' }),
    {
      status: 200,
      when: 'it has not been downloaded',
      send: (world) => withExport(world, (path, key) => world.call('GET', path, { key })),
    },
    {
      status: 200,
      when: 'it was downloaded',
      send: (world) => withFinishedExport(world, (path, key) => world.call('GET', path, { key })),
    },
    {
      status: 200,
      when: 'it was canceled',
      send: (world) =>
        withExport(world, async (path, key) => {
          await world.call('POST', `${path}/cancel`, { key })
          return await world.call('GET', path, { key })
        }),
    },
  ],
}
