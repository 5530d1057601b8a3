import { listBrokenRuns } from '../../../outlet/verify/verify-run-store.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { VerifyRunList } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { verifyRunRecord } from './verify-run-record.ts'

/** GET /dashboard/integrity/broken: cheap enough for every page, which shows a warning. */
export const listBrokenChains = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/broken',
  member: 'integrity.read',
  summary: 'List broken chains',
  description:
    'Returns, for each chain whose last verdict is BROKEN, the run with that verdict. A later run that failed or was canceled has no verdict.',
  response: VerifyRunList,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer }, reply) => {
      const runs = await listOrReportDrift(reply, async () => {
        const workspaceIds = (await listViewerWorkspaces(deps.db, viewer)).map(({ id }) => id)
        return await listBrokenRuns(deps.db, { companyId: viewer.companyId, workspaceIds })
      })
      return { runs: runs.map(verifyRunRecord) }
    },
})
