import type { ErrorCode } from '../../errors.ts'
import type { exportResource } from '../../outlet/export/export-job.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { CountedReports } from '../../platform/scheduling/counted-reports.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import type { Caller } from '../../tenancy/caller.ts'

type Refusal = Pick<Caller, 'id' | 'record'> & {
  resource: ReturnType<typeof exportResource>
  code: ErrorCode
}

/**
 * Reports refused downloads in the audit log, once per minute for each caller, export and error code: a client
 * that retries in a loop must not fill the company's own chain.
 */
export function startDownloadRefusals({
  db,
  monotonic,
  logger,
}: {
  db: Queryable
  monotonic: MonotonicClock
  logger: Logger
}): CountedReports<Refusal> {
  return new CountedReports({
    name: 'download-refusals',
    monotonic,
    logger,
    keyOf: ({ id, resource, code }) => `${id} ${resource.id} ${code}`,
    report: async ({ record, resource, code }, attempts) => {
      const metadata = { code, attempts }
      await db
        .transaction()
        .execute((trx) => record(trx, { action: 'EXPORT_DOWNLOAD_REFUSED', resource, metadata }))
      return true
    },
  })
}

export type DownloadRefusals = ReturnType<typeof startDownloadRefusals>
