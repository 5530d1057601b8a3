import type { OperationCases } from '../driver.ts'
import { jobCases, withExport, withFinishedExport } from '../own-export.ts'
import { ownEvent } from '../own-event.ts'
import { untilSigned } from '../signed-cases.ts'

export const getExportManifest: OperationCases = {
  cases: [
    ...jobCases({ method: 'GET', path: '/v1/exports/any/manifest' }),
    {
      status: 200,
      when: 'it was downloaded and its events are signed',
      send: async (world) => {
        await ownEvent(world, world.tenants.owner)
        return await withFinishedExport(world, (path, key) =>
          untilSigned(() => world.call('GET', `${path}/manifest`, { key })),
        )
      },
    },
    {
      status: 409,
      code: 'conflict',
      when: 'it has not been downloaded',
      send: (world) =>
        withExport(world, (path, key) => world.call('GET', `${path}/manifest`, { key })),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'it was canceled',
      send: (world) =>
        withExport(world, async (path, key) => {
          await world.call('POST', `${path}/cancel`, { key })
          return await world.call('GET', `${path}/manifest`, { key })
        }),
    },
  ],
}
