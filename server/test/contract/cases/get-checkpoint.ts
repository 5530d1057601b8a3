import type { OperationCases } from '../driver.ts'
import { signedCases, untilSigned } from '../signed-cases.ts'

export const getCheckpoint: OperationCases = {
  cases: [
    ...signedCases('/checkpoint'),
    {
      status: 200,
      when: 'JSON is requested',
      send: ({ call, tenants: { owner } }) =>
        untilSigned(() =>
          call('GET', `/v1/workspaces/${owner.workspace.id}/checkpoint`, {
            key: owner.companyKey,
            headers: { accept: 'application/json' },
          }),
        ),
    },
  ],
}
