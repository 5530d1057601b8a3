import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import type { ChainLink } from '../../../ledger/event-store.ts'
import { lookUpEvent } from '../../../outlet/console/look-up-event.ts'
import { parseId } from '../../../platform/id.ts'
import { errorResponses, Nullable, SESSION_ERRORS, STRICT, Uuid } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { EXPLORED_WORKSPACE, ProvableRecord, readExplored } from './explorer-query.ts'

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Neighbor = Nullable(
  Type.Object({ id: Uuid, seq: Type.Integer(), hash: Hash, prevHash: Hash }, STRICT),
)

const EventDetail = Type.Object(
  {
    event: ProvableRecord,
    previous: { ...Neighbor, description: 'Null for the first event, and when it is archived.' },
    next: { ...Neighbor, description: 'Null for the last event.' },
  },
  STRICT,
)

/** GET /dashboard/events/{eventId}: one event, with its position in the chain. */
export const getDashboardEvent =
  (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'searches' | 'signedIn'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/events/:eventId',
      {
        ...deps.signedIn('events.read', { hasOwnLimits: true }),
        schema: {
          operationId: 'getDashboardEvent',
          summary: 'Show an event',
          description: 'A hot event, and the hashes of those beside it in the chain.',
          tags: ['Explorer'],
          params: Type.Object({ eventId: Type.String() }, STRICT),
          querystring: Type.Object({ ...EXPLORED_WORKSPACE }, STRICT),
          response: {
            200: Type.Unsafe<string>(EventDetail),
            ...errorResponses(...SESSION_ERRORS, 'not_found', 'overloaded'),
          },
        },
      },
      async ({ viewer, params, query }, reply) => {
        const id = parseId<'event'>(params.eventId)
        const explored = await readExplored(deps, viewer, query)
        const found = id && (await lookUpEvent(deps.searches, explored, id))
        if (!found) throw new ApiError('not_found')
        const { event, previous, next } = found
        return await reply
          .type('application/json; charset=utf-8')
          .serializer(String)
          .send(
            `{"event":${provableRecordJson(event)},"previous":${neighborJson(previous)},"next":${neighborJson(next)}}`,
          )
      },
    )
  }

function neighborJson(link: ChainLink | null): string {
  if (!link) return 'null'
  const { id, seq, hash, prevHash } = link
  return JSON.stringify({ id, seq, hash, prevHash })
}
