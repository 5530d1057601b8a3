import { learnAllEventTypes } from '../../../server/test/harness/event/event-types.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { sendEvents } from '../../../server/test/harness/dashboard/explorer.ts'
import { expect, startDashboard } from './dashboard.ts'
import { assertThemesAccessible } from './page-case.ts'
import { PHONE } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

const LONG = 'only.here.'.repeat(20)
const paid = (metadata: object) => ({ category: 'billing', action: 'invoice.paid', metadata })

browserTest('shows what changed in a type, and leads to its events', async () => {
  const company = await annals.createCompany()
  const { id } = company.workspace
  const page = await open({ member: await signInAs(annals, company, 'VIEWER', [id]) })
  await page.goto('/app/event-types')
  await expect(page.getByText('No event types yet')).toBeVisible()
  await sendEvents(annals, company.workspaceKey, [
    paid({ amount: 1, card: { brand: 'visa' } }),
    paid({ amount: '1', card: { brand: 'visa' } }),
    { category: 'auth', action: 'user.login' },
  ])
  await learnAllEventTypes(annals.app.database.db, id)
  await page.reload()
  const list = page.getByRole('list', { name: 'Event types' })
  await expect(list.getByRole('listitem')).toHaveCount(2)
  await page.getByRole('combobox', { name: 'Filter by flag' }).click()
  await page.getByRole('option', { name: 'Metadata drift' }).click()
  await expect(list.getByRole('listitem')).toHaveCount(1)
  await list.getByRole('link', { name: /invoice\.paid/ }).click()
  await expect(page.getByRole('heading', { name: 'invoice.paid' })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Metadata drift' })).toContainText(
    'amount was number, now also string',
  )
  const keys = page.getByRole('table', { name: 'Metadata keys' })
  await expect(keys.getByRole('row', { name: /card\.brand/ })).toContainText('All events')
  await assertThemesAccessible(page)
  // A link reproduces the page.
  await page.reload()
  await page.getByRole('link', { name: 'Show events in Explorer' }).click()
  await expect(page).toHaveURL(/category=billing&action=invoice\.paid/)
  await page.goBack()
  await page.getByRole('link', { name: /first had amount as string/ }).click()
  await expect(page.getByRole('complementary', { name: 'Event' })).toContainText('invoice.paid')
})

browserTest('asks for a workspace if none is selected, and wraps a long action', async () => {
  const company = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const [, second] = company.workspaces
  await sendEvents(annals, second?.workspaceKey ?? '', [{ category: 'c', action: LONG }])
  await learnAllEventTypes(annals.app.database.db, second?.id ?? company.workspace.id)
  const page = await open({
    member: await signInAs(annals, company, 'OWNER'),
    // Chromium sometimes draws no more frames if its window is resized while a page loads.
    context: { viewport: PHONE },
  })
  await page.goto('/app/event-types')
  await page.getByRole('button', { name: 'Second' }).click()
  await page.getByRole('link', { name: LONG }).click()
  await expect(page.getByRole('heading', { name: LONG })).toBeVisible()
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  expect(overflow).toBeLessThanOrEqual(0)
})
