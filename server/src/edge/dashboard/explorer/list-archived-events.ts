import { Type } from 'typebox'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import { type ArchivePage, searchArchive } from '../../../outlet/explorer/search-archive.ts'
import { withRowOwner } from '../../../platform/scheduling/row-cost.ts'
import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { defineRoute } from '../../define-route.ts'
import { compressResponse } from '../../http/compress-response.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { asJsonText, joinRecords } from '../../page-json.ts'
import { CursorQuery, NextCursor, STRICT, TIME_RANGE } from '../../schema/common.ts'
import { ExportRow } from '../../schema/export-file.ts'
import { named } from '../../schema/named.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { EXPLORED_FILTERS, EXPLORED_TRACE, readExplored } from './explorer-query.ts'

const LIMIT_DEFAULT = 50

const ArchiveQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 10,
        maximum: 200,
        default: LIMIT_DEFAULT,
        description: 'The maximum number of events per page.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
    ...TIME_RANGE,
    ...EXPLORED_FILTERS,
    ...EXPLORED_TRACE,
  },
  STRICT,
)

const count = (description: string) => Type.Integer({ minimum: 0, description })

const ArchivedEvents = named(
  'ArchivedEvents',
  Type.Object(
    {
      data: Type.Array(ExportRow, {
        description: 'The events that this request found, those of the last archive file first.',
      }),
      nextCursor: NextCursor,
      progress: Type.Object(
        {
          segments: count('The archive files with events in the time range.'),
          segmentsSearched: count('How many of them have been searched or skipped.'),
          bytes: count('The size of these files.'),
          bytesSearched: count('The size of those that have been searched or skipped.'),
        },
        { ...STRICT, description: 'How far the search is.' },
      ),
    },
    { ...STRICT, description: 'Events that are no longer hot, and how far the search is.' },
  ),
)

const NOTHING: ArchivePage = {
  events: [],
  nextCursor: null,
  progress: { segments: 0, segmentsSearched: 0, bytes: 0, bytesSearched: 0 },
}

/** GET /dashboard/events/archived: events that are no longer hot. */
export const listArchivedEvents = defineRoute({
  method: 'GET',
  path: '/dashboard/events/archived',
  member: 'events.read',
  config: { hasOwnLimits: true, hasLargeResponses: true },
  options: {
    onSend: compressResponse,
  },
  summary: 'Search archived events',
  description:
    'Returns events that are no longer hot, with the filters of the explorer. A request searches for about a second, so a page can have few events or none. Follow `nextCursor` until it is null. The order is that of the archive files, from the last to the first, and an event can appear twice if it is archived during the search. Requires a plan with exports. If an archive file has to be restored first, the response is 503 `archive_restoring`, and the restore is requested.',
  query: ArchiveQuery,
  errors: ['not_found', 'plan_required', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(ArchivedEvents),
  handle: (
    deps: Pick<
      DashboardDeps,
      'db' | 'clock' | 'monotonic' | 'cursors' | 'searches' | 'exports' | 'coldCache'
    >,
  ) => {
    const archiveReads = new ArchiveReadLimiter()
    return async ({ viewer, query: { limit, cursor, ...input } }, reply) => {
      const { companyId, userId, plan } = viewer
      const signal = disconnectSignal(reply)
      const acquire = () => deps.searches.take(companyId, signal)
      const explored = await withPermit(acquire, () => readExplored(deps, viewer, input))
      const search = { ...explored, userId, plan, cursor: cursor ?? null }
      const reads = {
        ...deps,
        archive: deps.exports.archive,
        archiveMs: deps.exports.timeouts.checkMs,
        cache: deps.coldCache,
        acquire,
        acquireArchiveRead: () => archiveReads.take({ companyId, callerId: userId }, signal),
        signal,
      }
      const page = await readOrReportDrift(reply, NOTHING, () =>
        withRowOwner(companyId, () =>
          searchArchive(reads, { ...search, limit: limit ?? LIMIT_DEFAULT }),
        ),
      )
      const data = await joinRecords(page.events, provableRecordJson, companyId)
      const { nextCursor, progress } = page
      asJsonText(reply)
      return `{"data":[${data}],"nextCursor":${JSON.stringify(nextCursor)},"progress":${JSON.stringify(progress)}}`
    }
  },
})

async function withPermit<T>(
  acquire: () => Promise<Disposable>,
  work: () => Promise<T>,
): Promise<T> {
  using _permit = await acquire()
  return await work()
}
