import type { FastifyReply } from 'fastify'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import { readArchivedUntil, readCompleteSinceMs } from '../../../ledger/segment/segment-store.ts'
import type { ExplorationPage } from '../../../outlet/explorer/explore-events.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import { asJsonText, joinRecords } from '../../page-json.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import type { Explored } from './explorer-query.ts'

export const NO_EVENTS: ExplorationPage = { events: [], nextCursor: null }

/** Returns a page as text, because its parts are already JSON. */
export async function explorerPageJson(
  db: Queryable,
  reply: FastifyReply,
  { events, nextCursor }: ExplorationPage,
  { companyId, workspaceIds, hotSinceMs }: Explored,
): Promise<string> {
  const data = await joinRecords(events, provableRecordJson, companyId)
  // Read after the events, so that it covers those that were archived before they could be read.
  const { sinceMs, untilMs } = await readOrReportDrift(
    reply,
    { sinceMs: hotSinceMs, untilMs: null },
    async () => ({
      sinceMs: await readCompleteSinceMs(db, workspaceIds, hotSinceMs),
      untilMs: await readArchivedUntil(db, workspaceIds),
    }),
  )
  const completeSince = formatUtcMs(sinceMs)
  const rest = {
    nextCursor,
    hotSince: formatUtcMs(hotSinceMs),
    completeSince,
    archivedUntil: untilMs === null ? null : formatUtcMs(untilMs),
  }
  asJsonText(reply).header('x-hot-since', completeSince)
  return `{"data":[${data}],${JSON.stringify(rest).slice(1)}`
}
