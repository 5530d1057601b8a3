import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { raiseNotices } from '../../../server/src/tenancy/notice/notice-store.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { draftFor } from '../../../server/test/harness/dashboard/notices.ts'
import { expect, startDashboard } from './dashboard.ts'
import { assertAccessible } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
const [production, staging] = company.workspaces.map(({ id }) => id)
assert(production && staging)
const job = '018f4e5a-0000-7000-8000-00000000f001'
const drafts = [
  draftFor(company, {
    kind: 'CHAIN_BROKEN',
    message: 'The chain is broken at event 3.',
    link: '/app/integrity',
  }),
  draftFor(company, {
    kind: 'EXPORT_EXPIRED',
    workspaceId: staging,
    message: 'A CSV export expired.',
    link: `/app/exports?job=${job}`,
  }),
  draftFor(company, {
    kind: 'WEBHOOK_FAILING',
    message: `The webhook ${'hooks.example.com'.repeat(12)} is failing.`,
  }),
]
// Not in the same millisecond, so that their order is known.
const firstMs = Date.now() - drafts.length
for (const [nth, draft] of drafts.entries()) {
  await raiseNotices(annals.app.database.db, [draft], firstMs + nth)
}

const bell = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const panel = (page: Page) => page.getByRole('dialog', { name: 'Notices' })

browserTest('the bell counts unread notices and lists them, by keyboard', async () => {
  const owner = await signInAs(annals, company, 'OWNER')
  const page = await open({ member: owner })
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto('/app/company/workspaces')
  const unread = bell(page, 'Notices, 3 unread')
  await unread.focus()
  await page.keyboard.press('Enter')
  const rows = panel(page).getByRole('listitem')
  await expect(rows).toHaveCount(3)
  await expect(rows.first()).toContainText('Warning')
  await expect(rows.last()).toContainText('Critical')
  await expect(rows.last()).toContainText('Production')
  await page.keyboard.press('Escape')
  await expect(panel(page)).toHaveCount(0)
  await expect(unread).toBeFocused()

  await page.keyboard.press('Enter')
  await panel(page).getByRole('link', { name: 'Show export' }).press('Enter')
  await expect(page).toHaveURL(`${annals.url}/app/exports?job=${job}`)
  await expect(panel(page)).toHaveCount(0)
  await bell(page, 'Notices, 2 unread').click()
  await expect(rows.filter({ hasText: 'New' })).toHaveCount(2)
  await assertAccessible(page)
  await panel(page).getByRole('button', { name: 'Mark all as read' }).click()
  await expect(rows.filter({ hasText: 'New' })).toHaveCount(0)
  await page.keyboard.press('Escape')
  await expect(bell(page, 'Notices')).toBeVisible()
  // The window has the size of a phone now. Workspace, bell and member share a line.
  const top = await page.getByRole('banner').boundingBox()
  assert(top && top.height < 60, `the top of the page is ${top?.height} pixels high`)
})

browserTest('the number of unread notices fits beside a long email on a phone', async () => {
  const owner = await signInAs(annals, company, 'OWNER')
  const page = await open({ member: owner, context: { viewport: { width: 390, height: 844 } } })
  await page.goto('/app/exports')
  const unread = bell(page, 'Notices, 3 unread')
  const number = await unread.getByText('3').boundingBox()
  const button = await unread.boundingBox()
  assert(number && button)
  assert(number.width > 0 && number.x + number.width <= button.x + button.width)
  await expect(unread.getByText('3')).toBeInViewport({ ratio: 1 })
})

browserTest('a viewer sees only the notices of their workspaces', async () => {
  const viewer = await signInAs(annals, company, 'VIEWER', [staging])
  const page = await open({ member: viewer })
  await page.goto('/app/exports')
  await bell(page, 'Notices, 1 unread').click()
  await expect(panel(page).getByRole('listitem')).toHaveText([/A CSV export expired\./])
})

browserTest('a member turns off the mails of one kind, and it stays off', async () => {
  const viewer = await signInAs(annals, company, 'VIEWER', [staging])
  const page = await open({ member: viewer })
  await page.goto('/app/account')
  const mails = page.getByRole('region', { name: 'Notices by mail' })
  await expect(mails).toContainText('ANNALS_SMTP_URL')
  await expect(mails.getByRole('switch')).toHaveCount(6)
  const exportSwitch = mails.getByRole('switch', { name: 'An export expired' })
  await expect(exportSwitch).toBeChecked()
  await exportSwitch.focus()
  await page.keyboard.press('Space')
  await expect(exportSwitch).not.toBeChecked()
  const offOf = async () => (await viewer.call('GET', '/dashboard/notices/mail')).json.off
  await expect.poll(offOf).toEqual(['EXPORT_EXPIRED'])
  await page.reload()
  await expect(exportSwitch).not.toBeChecked()
  await expect(mails.getByRole('switch', { name: 'An export failed' })).toBeChecked()
})
