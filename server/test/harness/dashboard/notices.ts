import { createLogger } from '../../../src/platform/logger.ts'
import { listFailingWebhooks } from '../../../src/outlet/webhook/webhook-notice.ts'
import type { NoticeDraft } from '../../../src/tenancy/notice/notice.ts'
import { startNoticeWorker } from '../../../src/tenancy/notice/notice-worker.ts'
import type { CreatedCompany } from '../../../src/tenancy/create-company.ts'
import type { Member } from './dashboard.ts'
import type { TestApp } from '../app/start-app.ts'

/** Runs the notice worker of a node once, at this time. */
export async function findNotices({ app }: TestApp, atMs: number = Date.now()): Promise<void> {
  await using worker = startNoticeWorker({
    db: app.database.db,
    clock: () => atMs,
    logger: createLogger('error', 'stderr'),
    listFailingWebhooks,
  })
  await worker.runNow()
}

export type NoticeBody = {
  id: string
  kind: string
  severity: string
  workspaceId: string | null
  message: string
  link: string
  isRead: boolean
}

export async function noticesOf(member: Pick<Member, 'call'>): Promise<NoticeBody[]> {
  return (await member.call('GET', '/dashboard/notices?limit=200')).json.data
}

/** A notice about the company's first workspace. */
export function draftFor(
  { company, workspace }: CreatedCompany,
  draft: Partial<NoticeDraft> = {},
): NoticeDraft {
  return {
    companyId: company.id,
    kind: 'WEBHOOK_DISABLED',
    cause: 'test',
    workspaceId: workspace.id,
    message: 'The webhook example.com was disabled.',
    link: '/app/webhooks',
    ...draft,
  }
}
