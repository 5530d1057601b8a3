import type { OperationCases } from '../driver.ts'
import { jobCases, withExport, withFinishedExport } from '../own-export.ts'

export const downloadExport: OperationCases = {
  cases: [
    ...jobCases({ method: 'GET', path: '/v1/exports/any/download' }),
    {
      status: 200,
      when: 'it is JSONL',
      send: (world) =>
        withExport(world, (path, key) => world.call('GET', `${path}/download`, { key })),
    },
    {
      status: 200,
      when: 'it is CSV',
      send: async ({ call, tenants: { owner } }) => {
        const key = owner.workspaceKey
        const body = { source: 'HOT', format: 'CSV' }
        const { json } = await call('POST', '/v1/exports', { key, body })
        return await call('GET', `/v1/exports/${json.jobId}/download`, { key })
      },
    },
    {
      status: 409,
      code: 'export_not_downloadable',
      when: 'it was downloaded before',
      send: (world) =>
        withFinishedExport(world, (path, key) => world.call('GET', `${path}/download`, { key })),
    },
  ],
}
