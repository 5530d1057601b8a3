import { defineRoute } from '../../define-route.ts'
import { VerifyRunParams, VerifyRunRecord } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleRun, verifyRunRecord } from './verify-run-record.ts'

/** GET /dashboard/integrity/runs/{runId}: the run's progress or result. */
export const getVerifyRun = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/runs/:runId',
  member: 'integrity.read',
  summary: 'Get a verification run',
  description: 'Returns the progress and the result of the run.',
  params: VerifyRunParams,
  response: VerifyRunRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, params }) =>
      await verifyRunRecord(deps.db, viewer, await getVisibleRun(deps.db, viewer, params.runId)),
})
