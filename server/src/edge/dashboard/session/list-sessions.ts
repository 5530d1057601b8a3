import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { listLiveSessions as readSessions } from '../../../tenancy/session-store.ts'
import { DateTime, STRICT, Uuid } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const LiveSessionRecord = Type.Object(
  {
    id: Uuid,
    createdAt: DateTime,
    seenAt: Type.String({ format: 'date-time', description: 'The last use, to the minute.' }),
    expiresAt: Type.String({ format: 'date-time', description: 'The end, however busy it is.' }),
    address: Type.String({ description: 'Where it was signed in from.' }),
    userAgent: Type.String({
      description: 'What the browser called itself. Anybody may say anything.',
    }),
    isCurrent: Type.Boolean({ description: 'The one that asks.' }),
  },
  STRICT,
)

/** GET /dashboard/sessions: the member's sessions. There are few, so the list isn't paged. */
export const listSessions =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/sessions',
      {
        ...deps.signedIn('self.manage'),
        schema: {
          operationId: 'listSessions',
          summary: 'Where one is signed in',
          tags: ['Session'],
          response: {
            200: Type.Object({ sessions: Type.Array(LiveSessionRecord) }, STRICT),
          },
        },
      },
      async ({ viewer }) => {
        const sessions = await readSessions(deps.db, viewer.userId, deps.clock())
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
    )
  }
