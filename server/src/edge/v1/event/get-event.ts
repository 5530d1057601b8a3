import { Type } from 'typebox'
import { eventRecordJson } from '../../../ledger/event-record.ts'
import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { defineRoute } from '../../define-route.ts'
import { type GetEventDeps, readKeyEvent } from '../../event/key-event.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { asJsonText } from '../../page-json.ts'
import { EventParams, EventRecord } from '../../schema/event.ts'
import { traceRead } from '../../trace.ts'

/** GET /v1/events/{eventId}: one event, hot or archived. */
export const getEvent = defineRoute({
  method: 'GET',
  path: '/v1/events/:eventId',
  key: { permission: 'events:read' },
  config: { hasOwnLimits: true },
  summary: 'Get an event',
  description:
    'Returns an event that the key can read. With a company key that has the `audit` permission, this includes events of the system workspace. An event that is no longer hot requires a plan with exports, otherwise the response is 403 `plan_required`, also for unknown IDs from the time of archived events. If its archive file has to be restored first, the response is 503 `archive_restoring`, and the restore is requested. If the file is missing or damaged, it is 503 `unavailable`.',
  params: EventParams,
  errors: ['plan_required', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventRecord),
  handle: (deps: GetEventDeps) => {
    const archiveReads = new ArchiveReadLimiter()
    return async (request, reply) => {
      const { principal, params } = request
      const call = { principal, archiveReads, disconnected: disconnectSignal(reply) }
      const read = () => readKeyEvent(deps, call, params.eventId)
      const event = await traceRead(request, { name: 'read event' }, read)
      asJsonText(reply)
      return eventRecordJson(event)
    }
  },
})
