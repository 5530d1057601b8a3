import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { VerifyRunParams, VerifyRunRecord } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleRun, verifyRunRecord } from './verify-run-record.ts'

/** GET /dashboard/integrity/runs/{runId}: the run's progress or result. */
export const getVerifyRun =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/integrity/runs/:runId',
      {
        ...deps.signedIn('integrity.read'),
        schema: {
          operationId: 'getVerifyRun',
          summary: 'Get a verification run',
          description: 'Returns the progress and the result of the run.',
          tags: ['Integrity'],
          params: VerifyRunParams,
          response: { 200: VerifyRunRecord },
        },
      },
      async ({ viewer, params }) =>
        verifyRunRecord(await getVisibleRun(deps.db, viewer, params.runId)),
    )
  }
