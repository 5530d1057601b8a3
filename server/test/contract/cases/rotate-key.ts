import type { OperationCases } from '../driver.ts'
import { keyedCases } from '../keyed-cases.ts'

export const rotateKey: OperationCases = {
  cases: [
    ...keyedCases({ method: 'POST', path: '/v1/keys/any/rotate' }),
    {
      status: 403,
      code: 'dashboard_only',
      when: 'a key tries to rotate itself',
      send: async ({ call, tenants: { owner } }) => {
        const { json } = await call('GET', '/v1/keys/status', { key: owner.companyKey })
        return await call('POST', `/v1/keys/${json.id}/rotate`, { key: owner.companyKey })
      },
    },
  ],
}
