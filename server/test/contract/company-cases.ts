import type { Case } from './driver.ts'
import { keyedCases, type Request } from './keyed-cases.ts'
import type { Tenant } from './world.ts'

export const companyKeyOf = ({ companyKey }: Tenant): string => companyKey

/** Cases for every operation that requires a company key and has an id in its path. */
export function companyCases(request: Request): Case[] {
  const { method, path, body } = request
  return [
    ...keyedCases(request, companyKeyOf),
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants: { owner } }) =>
        call(method, `${path}?unknown=1`, { key: owner.companyKey, body }),
    },
    {
      status: 403,
      code: 'insufficient_scope',
      when: 'a workspace key is used',
      send: ({ call, tenants: { owner } }) => call(method, path, { key: owner.workspaceKey, body }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the id is malformed',
      send: ({ call, tenants: { owner } }) => call(method, path, { key: owner.companyKey, body }),
    },
  ]
}
