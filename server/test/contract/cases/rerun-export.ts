import type { TestResponse } from '../../harness/app/start-app.ts'
import { afterRateLimit } from '../after-rate-limit.ts'
import type { OperationCases } from '../driver.ts'
import { bodyCases } from '../keyed-cases.ts'
import { jobCases, withExport, withFinishedExport } from '../own-export.ts'
import type { Call } from '../world.ts'

const REQUEST = { method: 'POST', path: '/v1/exports/any/rerun' }

export const rerunExport: OperationCases = {
  cases: [
    ...jobCases(REQUEST),
    ...bodyCases(REQUEST),
    {
      status: 201,
      when: 'it is open',
      send: (world) =>
        withExport(world, (path, key) => world.call('POST', `${path}/rerun`, { key })),
    },
    {
      status: 201,
      when: 'it has ended',
      send: (world) =>
        withFinishedExport(world, (path, key) => world.call('POST', `${path}/rerun`, { key })),
    },
    {
      status: 403,
      code: 'plan_required',
      when: 'the plan has no exports',
      send: ({ call, tenants: { free } }) =>
        afterRateLimit(() => call('POST', REQUEST.path, { key: free.companyKey })),
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the company has reached its limit of open exports',
      send: ({ call, tenants: { crowded } }) =>
        crowded ? rerunAny(call, crowded.companyKey) : null,
    },
  ],
}

async function rerunAny(call: Call, key: string): Promise<TestResponse> {
  const { json } = await call('GET', '/v1/exports?limit=1', { key })
  return await call('POST', `/v1/exports/${json.data[0].id}/rerun`, { key })
}
