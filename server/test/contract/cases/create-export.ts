import type { OperationCases } from '../driver.ts'
import { exportBodyCases } from '../export-body-cases.ts'
import { EXPORT_BODY as body } from '../own-export.ts'

const PATH = '/v1/exports'

export const createExport: OperationCases = {
  body,
  cases: [
    ...exportBodyCases(PATH),
    {
      status: 201,
      when: 'a workspace key sets only required fields',
      send: ({ call, tenants: { owner } }) => call('POST', PATH, { key: owner.workspaceKey, body }),
    },
    {
      status: 201,
      when: 'a company key sets all fields',
      send: ({ call, tenants: { owner } }) =>
        call('POST', PATH, {
          key: owner.companyKey,
          body: {
            source: 'HOT_AND_ARCHIVED',
            format: 'CSV',
            filters: {
              from: '2026-01-01T00:00:00Z',
              to: '2026-02-01T00:00:00+01:00',
              category: 'contract',
              action: 'listed',
              workspaceId: owner.workspace.id,
              projectId: owner.project.id,
              actorId: 'u1',
              actorEmail: 'u1@example.com',
              resourceType: 'invoice',
              resourceId: '1',
            },
            limit: 10,
          },
        }),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'from is not before to',
      send: ({ call, tenants: { owner } }) => {
        const at = '2026-01-01T00:00:00Z'
        const filters = { from: at, to: at }
        return call('POST', PATH, { key: owner.workspaceKey, body: { ...body, filters } })
      },
    },
    {
      status: 409,
      code: 'conflict',
      when: 'the company has reached its limit of open exports',
      send: ({ call, tenants: { crowded } }) =>
        crowded ? call('POST', PATH, { key: crowded.workspaceKey, body }) : null,
    },
  ],
}
