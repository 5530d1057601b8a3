import { listRecentVerifyRuns as readVerifyRuns } from '../../../outlet/verify/verify-run-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { VerifyRunList, VerifyRunQuery } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { verifyRunRecord } from './verify-run-record.ts'

const LIMIT_DEFAULT = 20

/** GET /dashboard/integrity/runs: newest first. */
export const listVerifyRuns = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/runs',
  member: 'integrity.read',
  summary: 'List verification runs',
  description: 'Returns earlier runs and their results.',
  query: VerifyRunQuery,
  errors: ['not_found'],
  response: VerifyRunList,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, query }, reply) => {
      const { companyId } = viewer
      const limit = query.limit ?? LIMIT_DEFAULT
      const runs = await listOrReportDrift(reply, async () => {
        const workspaceIds =
          query.workspaceId === undefined
            ? (await listViewerWorkspaces(deps.db, viewer)).map(({ id }) => id)
            : [await visibleWorkspace(deps.db, viewer, query.workspaceId)]
        return await readVerifyRuns(deps.db, { companyId, workspaceIds, limit })
      })
      return { runs: runs.map(verifyRunRecord) }
    },
})
