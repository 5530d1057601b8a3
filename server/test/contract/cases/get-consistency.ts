import type { OperationCases } from '../driver.ts'
import { signedCases, untilSigned } from '../signed-cases.ts'

export const getConsistency: OperationCases = {
  query: '?from=0',
  cases: [
    ...signedCases('/consistency?from=1').filter(({ when }) => when !== 'a parameter is unknown'),
    {
      status: 400,
      code: 'invalid_request',
      when: 'to is larger than the signed tree',
      send: ({ call, tenants: { owner } }) =>
        untilSigned(() =>
          call('GET', `/v1/workspaces/${owner.workspace.id}/consistency?from=0&to=1000000000`, {
            key: owner.companyKey,
          }),
        ),
    },
  ],
}
