import { listRecentVerifyRuns as readVerifyRuns } from '../../../outlet/verify/verify-run-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { VerifyRunList, VerifyRunQuery } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { getVisibleRun, verifyRunRecords } from './verify-run-record.ts'

const LIMIT_DEFAULT = 20

/** GET /dashboard/integrity/runs: newest first. */
export const listVerifyRuns = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/runs',
  member: 'integrity.read',
  summary: 'List verification runs',
  description:
    'Returns earlier runs and their results. The last 400 runs of each workspace are kept.',
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
        const before =
          query.before === undefined ? null : await getVisibleRun(deps.db, viewer, query.before)
        const page = { companyId, workspaceIds, before, limit }
        return await verifyRunRecords(deps.db, viewer, await readVerifyRuns(deps.db, page))
      })
      return { runs }
    },
})
