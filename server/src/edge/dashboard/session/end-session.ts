import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { parseId } from '../../../platform/id.ts'
import * as sessionStore from '../../../tenancy/sign-in/session-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const SessionParams = Type.Object({ sessionId: Type.String() }, STRICT)

/** DELETE /dashboard/sessions/{sessionId}: ends one of the member's own sessions. */
export const endSession = defineRoute({
  method: 'DELETE',
  path: '/dashboard/sessions/:sessionId',
  member: 'self.manage',
  summary: 'End a session',
  description: 'Ends another session of the signed-in member.',
  params: SessionParams,
  response: { 204: Type.Null({ description: 'The session has ended.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'cookie'>) => async (request, reply) => {
    const { userId, sessionId: own } = request.viewer
    const sessionId = parseId<'session'>(request.params.sessionId)
    if (sessionId === null) throw new ApiError('not_found')
    await audited(deps, actorOf(request), async (trx, record) => {
      if (!(await sessionStore.deleteSession(trx, { userId, sessionId }))) {
        throw new ApiError('not_found')
      }
      const resource = { type: 'session', id: sessionId }
      record({ action: 'SESSIONS_ENDED', resource, metadata: { count: 1 } })
    })
    if (sessionId === own) reply.header('set-cookie', deps.cookie.clear())
    return null
  },
})
