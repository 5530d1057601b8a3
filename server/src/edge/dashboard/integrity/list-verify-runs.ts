import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { listRecentVerifyRuns as readVerifyRuns } from '../../../outlet/verify/verify-run-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace-store.ts'
import { VerifyRunList, VerifyRunQuery } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { verifyRunRecord } from './verify-run-record.ts'

const LIMIT_DEFAULT = 20

/** GET /dashboard/integrity/runs: newest first. */
export const listVerifyRuns =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/integrity/runs',
      {
        ...deps.signedIn('integrity.read'),
        schema: {
          operationId: 'listVerifyRuns',
          summary: 'List verification runs',
          description: 'Returns earlier runs and their results.',
          tags: ['Integrity'],
          querystring: VerifyRunQuery,
          errors: ['not_found'],
          response: {
            200: VerifyRunList,
          },
        },
      },
      async ({ viewer, query }, reply) => {
        const workspaceIds =
          query.workspaceId === undefined
            ? (await listViewerWorkspaces(deps.db, viewer)).map(({ id }) => id)
            : [await visibleWorkspace(deps.db, viewer, query.workspaceId)]
        const { companyId } = viewer
        const limit = query.limit ?? LIMIT_DEFAULT
        const runs = await listOrReportDrift(reply, 'verify_run', () =>
          readVerifyRuns(deps.db, { companyId, workspaceIds, limit }),
        )
        return { runs: runs.map(verifyRunRecord) }
      },
    )
  }
