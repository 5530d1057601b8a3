import { changedFields } from '../../../platform/changed-fields.ts'
import { listMailOff, replaceMailOff } from '../../../tenancy/notice/notice-mail-store.ts'
import { defineRoute } from '../../define-route.ts'
import { NoticeMailInput, NoticeMailSettings } from '../../schema/dashboard/notices.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import { mailSettings } from './get-notice-mail.ts'

/** PUT /dashboard/notices/mail: which notices the member gets by mail. */
export const replaceNoticeMail = defineRoute({
  method: 'PUT',
  path: '/dashboard/notices/mail',
  member: 'self.manage',
  summary: 'Replace your mail settings for notices',
  description: 'Sets which notices the signed-in member gets by mail. Takes effect immediately.',
  body: NoticeMailInput,
  response: NoticeMailSettings,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'mailer'>) => async (request) => {
    const { viewer, body } = request
    const { userId } = viewer
    await audited(deps, actorOf(request), async (trx, record) => {
      const present = { off: await listMailOff(trx, userId) }
      const changed = changedFields(present, { off: body.off.toSorted() })
      if (!changed) return
      await replaceMailOff(trx, userId, body.off)
      const resource = { type: 'user', id: userId }
      record({ action: 'NOTICE_MAIL_CHANGED', resource, metadata: changed })
    })
    return await mailSettings(deps, viewer)
  },
})
