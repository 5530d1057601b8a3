import { listBrokenRuns } from '../../../outlet/verify/verify-run-store.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { VerifyRunList } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { verifyRunRecords } from './verify-run-record.ts'

/** GET /dashboard/integrity/broken: cheap enough for every page, which shows a warning. */
export const listBrokenChains = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/broken',
  member: 'integrity.read',
  summary: 'List broken chains',
  description:
    'Returns, for each chain whose last verdict is BROKEN, the run with that verdict. A later run that failed, was canceled or verified only a period doesn’t replace it.',
  response: VerifyRunList,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer }, reply) => {
      const runs = await listOrReportDrift(reply, async () => {
        const workspaceIds = (await listViewerWorkspaces(deps.db, viewer)).map(({ id }) => id)
        const broken = await listBrokenRuns(deps.db, { companyId: viewer.companyId, workspaceIds })
        return await verifyRunRecords(deps.db, viewer, broken)
      })
      return { runs }
    },
})
