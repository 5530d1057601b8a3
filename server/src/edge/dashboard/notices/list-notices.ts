import { assertId } from '../../../platform/id.ts'
import { NOTICE_RULES } from '../../../tenancy/notice/notice.ts'
import {
  countUnreadNotices,
  type ListedNotice,
  listVisibleNotices,
} from '../../../tenancy/notice/notice-store.ts'
import { defineRoute } from '../../define-route.ts'
import { NoticePage, NoticeQuery } from '../../schema/dashboard/notices.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'

const LIMIT_DEFAULT = 50

/** GET /dashboard/notices: newest first. */
export const listNotices = defineRoute({
  method: 'GET',
  path: '/dashboard/notices',
  member: 'notices.read',
  summary: 'List notices',
  description:
    "Returns the notices of the last 90 days that the member can see: those about the member's workspaces, of the kinds that the member's role can do something about or see. A cursor is only valid for the same member.",
  query: NoticeQuery,
  response: NoticePage,
  handle:
    ({ db, cursors }: Pick<DashboardDeps, 'db' | 'cursors'>) =>
    async ({ viewer, query }, reply) => {
      const limit = query.limit ?? LIMIT_DEFAULT
      const binding = `notices/${viewer.userId}`
      const position = cursors.read(query.cursor, binding)
      const before = position === null ? null : assertId<'notice'>(position)
      const empty = { found: [], unreadCount: 0 }
      const { found, unreadCount } = await readOrReportDrift(reply, empty, async () => ({
        // One more than requested shows whether there is another page.
        found: await listVisibleNotices(db, viewer, { before, limit: limit + 1 }),
        unreadCount: await countUnreadNotices(db, viewer),
      }))
      const page = found.slice(0, limit)
      const last = found.length > limit ? page.at(-1) : undefined
      return {
        data: page.map(noticeRecord),
        unreadCount,
        nextCursor: last ? cursors.encode(last.id, binding) : null,
      }
    },
})

function noticeRecord({ id, kind, workspaceId, message, link, createdAt, isRead }: ListedNotice) {
  const { severity } = NOTICE_RULES[kind]
  return {
    id,
    kind,
    severity,
    workspaceId,
    message,
    link,
    createdAt: createdAt.toISOString(),
    isRead,
  }
}
