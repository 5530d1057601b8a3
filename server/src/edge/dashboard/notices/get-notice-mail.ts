import { listMailOff } from '../../../tenancy/notice/notice-mail-store.ts'
import { kindsFor } from '../../../tenancy/notice/notice.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { NoticeMailSettings } from '../../schema/dashboard/notices.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

type Deps = Pick<DashboardDeps, 'db' | 'mailer'>

/** GET /dashboard/notices/mail: which notices the member gets by mail. */
export const getNoticeMail = defineRoute({
  method: 'GET',
  path: '/dashboard/notices/mail',
  member: 'self.manage',
  summary: 'Get your mail settings for notices',
  description: 'Returns which notices the signed-in member gets by mail. By default, all of them.',
  response: NoticeMailSettings,
  handle:
    (deps: Deps) =>
    async ({ viewer }) =>
      await mailSettings(deps, viewer),
})

export async function mailSettings({ db, mailer }: Deps, { userId, role }: Viewer) {
  return {
    isConfigured: mailer.isConfigured,
    kinds: kindsFor(role),
    off: await listMailOff(db, userId),
  }
}
