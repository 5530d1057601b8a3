import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import type { ChainLink } from '../../../ledger/event-store.ts'
import { lookUpEvent } from '../../../outlet/explorer/look-up-event.ts'
import { parseId } from '../../../platform/id.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText } from '../../page-json.ts'
import { Nullable, STRICT, Uuid } from '../../schema/common.ts'
import { ExportRow } from '../../schema/export-file.ts'
import { named } from '../../schema/named.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { EXPLORED_WORKSPACE, readExplored } from './explorer-query.ts'

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Neighbor = Nullable(
  named(
    'ChainLink',
    Type.Object(
      {
        id: { ...Uuid, description: 'The ID of the event.' },
        seq: Type.Integer({ description: 'The sequence number of the event.' }),
        hash: { ...Hash, description: 'The hash of the event.' },
        prevHash: { ...Hash, description: 'The hash of the previous event.' },
      },
      { ...STRICT, description: 'The position of an event in its chain.' },
    ),
  ),
)

const EventDetail = Type.Object(
  {
    event: ExportRow,
    previous: {
      ...Neighbor,
      description:
        'The previous event in the chain. Null for the first event, or if the previous one is archived.',
    },
    next: { ...Neighbor, description: 'The next event in the chain. Null for the last event.' },
  },
  { ...STRICT, description: 'An event and its neighbors in the chain.' },
)

/** GET /dashboard/events/{eventId}: one event, with its position in the chain. */
export const getDashboardEvent = defineRoute({
  method: 'GET',
  path: '/dashboard/events/:eventId',
  member: 'events.read',
  config: { hasOwnLimits: true },
  summary: 'Get an event',
  description: 'Returns a hot event, and the hashes of its neighbors in the chain.',
  params: Type.Object({ eventId: Type.String() }, STRICT),
  query: Type.Object({ ...EXPLORED_WORKSPACE }, STRICT),
  response: Type.Unsafe<string>(EventDetail),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'searches'>) =>
    async ({ viewer, params, query }, reply) => {
      const id = parseId<'event'>(params.eventId)
      const explored = await readExplored(deps, viewer, query)
      const found = id && (await lookUpEvent(deps.searches, explored, id))
      if (!found) throw new ApiError('not_found')
      const { event, previous, next } = found
      asJsonText(reply)
      return `{"event":${provableRecordJson(event)},"previous":${neighborJson(previous)},"next":${neighborJson(next)}}`
    },
})

function neighborJson(link: ChainLink | null): string {
  if (!link) return 'null'
  const { id, seq, hash, prevHash } = link
  return JSON.stringify({ id, seq, hash, prevHash })
}
