import { ApiError } from '../../../errors.ts'
import { finishVerifyRun } from '../../../outlet/verify/verify-run-store.ts'
import { defineRoute } from '../../define-route.ts'
import { VerifyRunParams, VerifyRunRecord } from '../../schema/dashboard/integrity.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleRun, verifyRunRecord } from './verify-run-record.ts'

/** POST /dashboard/integrity/runs/{runId}/cancel */
export const cancelVerifyRun = defineRoute({
  method: 'POST',
  path: '/dashboard/integrity/runs/:runId/cancel',
  member: 'integrity.verify',
  summary: 'Cancel a verification run',
  description: 'Stops the run without a result.',
  params: VerifyRunParams,
  errors: ['conflict'],
  response: VerifyRunRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, params } = request
    const run = await getVisibleRun(deps.db, viewer, params.runId)
    await audited(deps, actorOf(request), async (trx, record) => {
      const end = {
        status: 'CANCELED' as const,
        checked: null,
        verdict: 'The run was canceled before it reached a result.',
        badSeq: null,
        badEventId: null,
      }
      if (!(await finishVerifyRun(trx, run, end, new Date(deps.clock())))) {
        throw new ApiError('conflict', { message: 'This run has already ended.' })
      }
      record({
        action: 'VERIFY_CANCELED',
        resource: { type: 'workspace', id: run.workspaceId },
        metadata: { runId: run.id },
      })
    })
    const ended = await getVisibleRun(deps.db, viewer, params.runId)
    return await verifyRunRecord(deps.db, viewer, ended)
  },
})
