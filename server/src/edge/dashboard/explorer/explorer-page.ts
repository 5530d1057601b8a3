import type { FastifyReply } from 'fastify'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import type { ExplorationPage } from '../../../outlet/explorer/explore-events.ts'
import type { CompanyId } from '../../../platform/id.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import { asJsonText, joinRecords } from '../../page-json.ts'

export const NO_EVENTS: ExplorationPage = { events: [], nextCursor: null }

/** Returns a page as text, because its parts are already JSON. */
export async function explorerPageJson(
  reply: FastifyReply,
  { events, nextCursor }: ExplorationPage,
  { companyId, hotSinceMs }: { companyId: CompanyId; hotSinceMs: number },
): Promise<string> {
  const hotSince = formatUtcMs(hotSinceMs)
  const data = await joinRecords(events, provableRecordJson, companyId)
  asJsonText(reply).header('x-hot-since', hotSince)
  return `{"data":[${data}],"nextCursor":${JSON.stringify(nextCursor)},"hotSince":"${hotSince}"}`
}
