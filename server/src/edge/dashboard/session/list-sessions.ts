import { Type } from 'typebox'
import { listLiveSessions as readSessions } from '../../../tenancy/sign-in/session-store.ts'
import { defineRoute } from '../../define-route.ts'
import { DateTime, STRICT, Uuid } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'

const LiveSessionRecord = Type.Object(
  {
    id: { ...Uuid, description: 'The ID of the session.' },
    createdAt: { ...DateTime, description: 'When the member signed in.' },
    seenAt: Type.String({
      format: 'date-time',
      description: 'When the session was last used, to the minute.',
    }),
    expiresAt: Type.String({
      format: 'date-time',
      description: 'When the session ends, even if it is in use.',
    }),
    address: Type.String({ description: 'The IP address that the member signed in from.' }),
    userAgent: Type.String({
      description: 'What the browser reported. It is not verified.',
    }),
    isCurrent: Type.Boolean({ description: 'Whether this is the session of the request.' }),
  },
  STRICT,
)

/** GET /dashboard/sessions: the member's sessions. There are few, so the list isn't paged. */
export const listSessions = defineRoute({
  method: 'GET',
  path: '/dashboard/sessions',
  member: 'self.manage',
  summary: 'List sessions',
  description: 'Returns the sessions of the signed-in member.',
  response: Type.Object(
    { sessions: Type.Array(LiveSessionRecord, { description: 'The sessions.' }) },
    { ...STRICT, description: 'The open sessions of the member.' },
  ),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer }, reply) => {
      const sessions = await listOrReportDrift(reply, () =>
        readSessions(deps.db, viewer.userId, deps.clock()),
      )
      return {
        sessions: sessions.map(({ createdAt, seenAt, expiresAt, ...session }) => ({
          ...session,
          createdAt: createdAt.toISOString(),
          seenAt: seenAt.toISOString(),
          expiresAt: expiresAt.toISOString(),
          isCurrent: session.id === viewer.sessionId,
        })),
      }
    },
})
