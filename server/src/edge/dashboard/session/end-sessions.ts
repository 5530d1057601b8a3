import { Type } from 'typebox'
import * as sessionStore from '../../../tenancy/sign-in/session-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** DELETE /dashboard/sessions: ends all of the member's sessions, including this one. */
export const endSessions = defineRoute({
  method: 'DELETE',
  path: '/dashboard/sessions',
  member: 'self.manage',
  summary: 'Sign out everywhere',
  description: 'Ends all sessions of the signed-in member, including this one.',
  response: Type.Object(
    { ended: Type.Integer({ description: 'How many sessions ended.' }) },
    { ...STRICT, description: 'The sessions have ended.' },
  ),
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'cookie'>) => async (request, reply) => {
    const { userId } = request.viewer
    const ended = await audited(deps, actorOf(request), async (trx, record) => {
      const count = await sessionStore.deleteSessions(trx, { userId })
      const resource = { type: 'user', id: userId }
      record({ action: 'SESSIONS_ENDED', resource, metadata: { count } })
      return count
    })
    reply.header('set-cookie', deps.cookie.clear())
    return { ended }
  },
})
