import { Type } from 'typebox'
import { markNoticesRead } from '../../../tenancy/notice/notice-store.ts'
import { defineRoute } from '../../define-route.ts'
import { ReadNotices } from '../../schema/dashboard/notices.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'

/** POST /dashboard/notices/read: for the member alone, so there is no audit entry. */
export const readNotices = defineRoute({
  method: 'POST',
  path: '/dashboard/notices/read',
  member: 'notices.read',
  summary: 'Mark notices as read',
  description: 'Marks notices as read for the signed-in member.',
  body: ReadNotices,
  response: { 204: Type.Null({ description: 'They are marked as read.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, body } = request
    const now = new Date(deps.clock())
    await audited(deps, actorOf(request), (trx) =>
      markNoticesRead(trx, viewer, { ids: body.noticeIds, now }),
    )
    return null
  },
})
