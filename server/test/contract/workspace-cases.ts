import type { Case } from './driver.ts'
import { keyedCases } from './keyed-cases.ts'

/** What can happen to a read of a workspace, by the end of its path. */
export function workspaceCases(end: string): Case[] {
  const pathOf = (id: string) => `/v1/workspaces/${id}${end}`
  return [
    ...keyedCases({ method: 'GET', path: pathOf('any') }),
    {
      status: 200,
      when: 'a company key names a workspace of its company',
      send: ({ call, tenants: { owner } }) =>
        call('GET', pathOf(owner.workspace.id), { key: owner.companyKey }),
    },
    {
      status: 200,
      when: 'a workspace key names its workspace',
      send: ({ call, tenants: { owner } }) =>
        call('GET', pathOf(owner.workspace.id), { key: owner.workspaceKey }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants: { owner } }) =>
        call('GET', `${pathOf(owner.workspace.id)}?unknown=1`, { key: owner.companyKey }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the workspace is another company’s',
      send: ({ call, tenants: { owner, stranger } }) =>
        call('GET', pathOf(stranger.workspace.id), { key: owner.companyKey }),
    },
  ]
}
