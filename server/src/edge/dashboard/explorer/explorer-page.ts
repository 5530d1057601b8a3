import type { FastifyReply } from 'fastify'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import type { ExplorationPage } from '../../../outlet/explorer/explore-events.ts'
import type { CompanyId } from '../../../platform/id.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import { joinRecords } from '../../page-json.ts'

/** Sends a page as text, because its parts are already JSON. */
export async function sendExplorerPage(
  reply: FastifyReply,
  { events, nextCursor }: ExplorationPage,
  { companyId, hotSinceMs }: { companyId: CompanyId; hotSinceMs: number },
): Promise<FastifyReply> {
  const hotSince = formatUtcMs(hotSinceMs)
  const data = await joinRecords(events, provableRecordJson, companyId)
  return await reply
    .header('x-hot-since', hotSince)
    .type('application/json; charset=utf-8')
    .serializer(String)
    .send(`{"data":[${data}],"nextCursor":${JSON.stringify(nextCursor)},"hotSince":"${hotSince}"}`)
}
