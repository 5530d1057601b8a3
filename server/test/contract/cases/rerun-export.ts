import { afterTheRateLimit } from '../after-the-rate-limit.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { jobCases, withExport, withFinishedExport } from '../own-export.ts'

const REQUEST = { method: 'POST', path: '/v1/exports/any/rerun' }

export const rerunExport: OperationCases = {
  cases: [
    ...jobCases(REQUEST),
    ...bodyCases(REQUEST),
    {
      status: 201,
      when: 'it is open',
      send: (world) =>
        withExport(world, (path, key) => world.ask('POST', `${path}/rerun`, { key })),
    },
    {
      status: 201,
      when: 'it has ended',
      send: (world) =>
        withFinishedExport(world, (path, key) => world.ask('POST', `${path}/rerun`, { key })),
    },
    {
      status: 403,
      code: 'plan_required',
      when: 'the plan has no exports',
      send: ({ ask, tenants: { free } }) =>
        afterTheRateLimit(() => ask('POST', REQUEST.path, { key: free.companyKey })),
    },
  ],
}
