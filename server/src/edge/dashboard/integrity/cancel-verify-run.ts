import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../../../errors.ts'
import { finishVerifyRun } from '../../../outlet/verify/verify-run-store.ts'
import { refuseBody } from '../../http/no-body.ts'
import { VerifyRunParams, VerifyRunRecord } from '../../schema/dashboard/integrity.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleRun, verifyRunRecord } from './verify-run-record.ts'

/** POST /dashboard/integrity/runs/{runId}/cancel */
export const cancelVerifyRun =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/integrity/runs/:runId/cancel',
      {
        ...deps.signedIn('integrity.verify'),
        preValidation: refuseBody,
        schema: {
          operationId: 'cancelVerifyRun',
          summary: 'Cancel a verification run',
          description: 'Stops the run without a result.',
          tags: ['Integrity'],
          params: VerifyRunParams,
          errors: ['conflict'],
          response: {
            200: VerifyRunRecord,
          },
        },
      },
      async (request) => {
        const { viewer, params } = request
        const run = await getVisibleRun(deps.db, viewer, params.runId)
        await audited(deps, actorOf(request), async (trx, note) => {
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
          note({
            action: 'VERIFY_CANCELED',
            resource: { type: 'workspace', id: run.workspaceId },
            metadata: { runId: run.id },
          })
        })
        return verifyRunRecord(await getVisibleRun(deps.db, viewer, params.runId))
      },
    )
  }
