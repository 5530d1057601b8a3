import { afterRateLimit } from './after-rate-limit.ts'
import type { Case } from './driver.ts'
import { bodyCases, keyedCases } from './keyed-cases.ts'
import { EXPORT_BODY as body } from './own-export.ts'

/** Cases for every operation that reads an export request. */
export function exportBodyCases(path: string): Case[] {
  const request = { method: 'POST', path, body }
  return [
    ...keyedCases(request),
    ...bodyCases(request),
    {
      status: 400,
      code: 'invalid_request',
      when: 'archived events are requested without a time range',
      send: ({ call, tenants: { owner } }) =>
        call('POST', path, { key: owner.workspaceKey, body: { ...body, source: 'ARCHIVED' } }),
    },
    {
      status: 403,
      code: 'insufficient_scope',
      when: 'a workspace key names another workspace',
      send: ({ call, tenants: { owner, stranger } }) =>
        call('POST', path, {
          key: owner.workspaceKey,
          body: { ...body, filters: { workspaceId: stranger.workspace.id } },
        }),
    },
    {
      status: 403,
      code: 'plan_required',
      when: 'the plan has no exports',
      send: ({ call, tenants: { free } }) =>
        afterRateLimit(() => call('POST', path, { key: free.companyKey, body })),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the workspace is another company’s',
      send: ({ call, tenants: { owner, stranger } }) =>
        call('POST', path, {
          key: owner.companyKey,
          body: { ...body, filters: { workspaceId: stranger.workspace.id } },
        }),
    },
  ]
}
