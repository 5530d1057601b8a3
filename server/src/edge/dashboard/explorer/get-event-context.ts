import { Type } from 'typebox'
import { listContext } from '../../../outlet/explorer/event-context-store.ts'
import { defineRoute } from '../../define-route.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readExplored } from './explorer-query.ts'

/** How many events are listed on each side. */
const NEIGHBORS = 5

const ContextQuery = Type.Object(
  {
    workspaceId: { ...Uuid, description: 'The workspace of the event.' },
    seq: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER - NEIGHBORS,
      description: 'The sequence number of the event.',
    }),
  },
  STRICT,
)

const EventContext = Type.Object(
  {
    events: Type.Array(
      Type.Object(
        {
          id: { ...Uuid, description: 'The ID of the event.' },
          seq: Type.Integer({ description: 'Its sequence number.' }),
          timestamp: { ...DateTime, description: 'When it happened.' },
          category: Type.String({ description: 'Its category.' }),
          action: Type.String({ description: 'Its action.' }),
          actorId: Nullable(Type.String({ description: 'The ID of its actor.' })),
          actorEmail: Nullable(Type.String({ description: 'The email address of its actor.' })),
        },
        STRICT,
      ),
      { description: 'The events, by sequence number.' },
    ),
  },
  { ...STRICT, description: 'A part of a chain.' },
)

/** GET /dashboard/events/context: an event and those around it in the chain. */
export const getEventContext = defineRoute({
  method: 'GET',
  path: '/dashboard/events/context',
  member: 'events.read',
  config: { hasOwnLimits: true },
  summary: 'Get the context of an event',
  description:
    'Returns a hot event with the five events before it and the five after it in its chain, as far as they exist and are hot.',
  query: ContextQuery,
  errors: ['not_found'],
  response: EventContext,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'searches'>) =>
    async ({ viewer, query: { workspaceId: named, seq } }) => {
      const explored = await readExplored(deps, viewer, { workspaceId: named })
      const [events = []] = await deps.searches.readEach(
        explored,
        (db, workspaceId, { floorSeq }) => {
          const fromSeq = Math.max(seq - NEIGHBORS, floorSeq + 1)
          return listContext(db, { workspaceId, fromSeq, toSeq: seq + NEIGHBORS })
        },
      )
      return {
        events: events.map((event) => ({ ...event, timestamp: event.timestamp.toISOString() })),
      }
    },
})
