import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { ApiError, type ErrorCode } from '../../errors.ts'
import { type ExportJobId, exportResource } from '../../outlet/export/job/export-job.ts'
import { findExportJob } from '../../outlet/export/job/export-job-store.ts'
import { parseId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { CountedReports } from '../../platform/scheduling/counted-reports.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import type { Caller } from '../../tenancy/caller.ts'
import type { ExportParams } from '../schema/export.ts'

type Refusal = Pick<Caller, 'id' | 'companyId' | 'record'> & {
  jobId: ExportJobId
  code: ErrorCode
}

export type DownloadRefusals = CountedReports<Refusal>

/**
 * Reports refused downloads in the audit log, at most once per minute for each caller, export and error code,
 * because a client that retries in a loop must not fill the chain. The guard of a route can refuse a request
 * before the export is read, so this checks that the export belongs to the company.
 */
export function startDownloadRefusals({
  db,
  monotonic,
  logger,
}: {
  db: Queryable
  monotonic: MonotonicClock
  logger: Logger
}): DownloadRefusals {
  return new CountedReports({
    name: 'download-refusals',
    monotonic,
    logger,
    keyOf: ({ id, jobId, code }) => `${id} ${jobId} ${code}`,
    groupOf: ({ companyId }) => companyId,
    isKnown: async ({ companyId, jobId }) =>
      (await findExportJob(db, { companyId, workspaceId: null }, jobId)) !== null,
    report: async ({ record, jobId, code }, attempts) => {
      const resource = exportResource({ id: jobId })
      const metadata = { code, attempts }
      await db
        .transaction()
        .execute((trx) => record(trx, { action: 'EXPORT_DOWNLOAD_REFUSED', resource, metadata }))
      return true
    },
  })
}

/** Counts the refusals of a download route, including those of its guard. */
export function countRefusals(
  app: FastifyInstance,
  refusals: DownloadRefusals,
  callerOf: (request: FastifyRequest) => Caller | undefined,
): void {
  app.addHook<{ Params: Static<typeof ExportParams> }>(
    'onError',
    async (request, _reply, error) => {
      // A temporary refusal, or a client that has disconnected, says nothing about the export. Neither does a
      // caller that is no longer authenticated.
      if (!(error instanceof ApiError) || error.status >= 500) return
      if (error.status === 401 || error.status === 429) return
      const jobId = parseId<'export-job'>(request.params.jobId)
      const caller = callerOf(request)
      if (jobId === null || !caller) return
      const { id, companyId, record } = caller
      refusals.count({ id, companyId, record, jobId, code: error.code })
    },
  )
}
