import { Type } from 'typebox'
import { deleteSession } from '../../../tenancy/sign-in/session-store.ts'
import { defineRoute } from '../../define-route.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** DELETE /dashboard/session: ends this session. */
export const logOut = defineRoute({
  method: 'DELETE',
  path: '/dashboard/session',
  member: 'self.enroll',
  summary: 'Sign out',
  description: 'Ends the session and clears its cookie.',
  response: { 204: Type.Null({ description: 'The member is signed out.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'cookie'>) => async (request, reply) => {
    const { sessionId } = request.viewer
    // Signing out requires no access: the second click of a double click changes nothing.
    const { access: _, ...actor } = actorOf(request)
    await audited(deps, actor, async (trx, record) => {
      if (!(await deleteSession(trx, request.viewer))) return
      record({ action: 'LOGOUT', resource: { type: 'session', id: sessionId } })
    })
    return await reply.header('set-cookie', deps.cookie.clear()).code(204).send(null)
  },
})
