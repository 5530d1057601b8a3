import type { OperationCases } from '../driver.ts'
import { signedCases, untilSigned } from '../signed-cases.ts'

export const getTile: OperationCases = {
  cases: [
    ...signedCases('/tlog/tile/0/000.p/1'),
    {
      status: 200,
      when: 'entries are requested',
      send: ({ call, tenants: { owner } }) =>
        untilSigned(() =>
          call('GET', `/v1/workspaces/${owner.workspace.id}/tlog/tile/entries/000.p/1`, {
            key: owner.companyKey,
          }),
        ),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the tree has no such tile',
      send: ({ call, tenants: { owner } }) =>
        untilSigned(() =>
          call('GET', `/v1/workspaces/${owner.workspace.id}/tlog/tile/5/000`, {
            key: owner.companyKey,
          }),
        ),
    },
  ],
}
