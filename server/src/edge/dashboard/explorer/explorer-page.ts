import type { FastifyReply } from 'fastify'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import type { ExplorerPage } from '../../../outlet/console/explore-events.ts'
import { formatUtcMs } from '../../../platform/utc-time.ts'

/** A page as the text it is made of: its parts are JSON already. */
export async function sendExplorerPage(
  reply: FastifyReply,
  { events, nextCursor }: ExplorerPage,
  { hotSinceMs }: { hotSinceMs: number },
): Promise<FastifyReply> {
  const hotSince = formatUtcMs(hotSinceMs)
  const data = events.map(provableRecordJson).join(',')
  return await reply
    .header('x-hot-since', hotSince)
    .type('application/json; charset=utf-8')
    .serializer(String)
    .send(`{"data":[${data}],"nextCursor":${JSON.stringify(nextCursor)},"hotSince":"${hotSince}"}`)
}
