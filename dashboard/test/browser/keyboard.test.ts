import { storeEvents } from '../../../server/test/harness/exports.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, promise } = await startDashboard()

promise('from the sign-in to an event and back with nothing but the keyboard', async () => {
  const company = await annals.found()
  const actions = ['user.login', 'invoice.deleted', 'invoice.paid', 'invoice.created']
  await storeEvents(
    annals,
    company.workspaceKey,
    actions.map((action) => ({ category: 'c', action, actor: { email: 'ana@example.com' } })),
  )
  const page = await open()
  const { keyboard } = page
  await page.goto('/app/explorer')
  await expect(page.getByLabel('E-mail')).toBeFocused()
  await keyboard.type(company.user.email)
  await keyboard.press('Tab')
  await keyboard.type(company.user.password)
  await keyboard.press('Enter')

  const events = page.getByRole('grid', { name: 'Events' })
  await expect(events.getByRole('row')).toHaveCount(5)
  await keyboard.press('/')
  await expect(page.getByRole('searchbox')).toBeFocused()
  await keyboard.type('invoice')
  await keyboard.press('Enter')
  await expect(events.getByRole('row')).toHaveCount(4)

  const focused = page.locator('[role=row]:focus')
  await keyboard.press('j')
  await expect(focused).toContainText('invoice.created')
  await keyboard.press('j')
  await keyboard.press('j')
  await expect(focused).toContainText('invoice.deleted')
  await keyboard.press('k')
  await expect(focused).toContainText('invoice.paid')
  await keyboard.press('Enter')
  const event = page.getByRole('complementary', { name: 'Event' })
  await expect(event.getByRole('heading', { name: 'invoice.paid' })).toBeFocused()
  await keyboard.press('j')
  await expect(event.getByRole('heading', { name: 'invoice.deleted' })).toBeVisible()
  await keyboard.press('Escape')
  await expect(event).toHaveCount(0)
  await expect(focused).toContainText('invoice.deleted')
})

promise('every key is named behind the question mark, and opens what it says', async () => {
  const company = await annals.found()
  await storeEvents(annals, company.workspaceKey, [{ category: 'c', action: 'user.login' }])
  const page = await open()
  await page.goto('/app/explorer')
  await page.getByLabel('E-mail').fill(company.user.email)
  await page.getByLabel(/^Password/).fill(company.user.password)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('gridcell', { name: 'user.login' })).toBeVisible()
  const dialog = page.getByRole('dialog')
  await page.keyboard.press('?')
  for (const key of ['/', 'j', 'k', 'Enter', 'Esc', '[', ']', 'e', 's', '?']) {
    await expect(dialog.locator('kbd', { hasText: key }).first()).toBeVisible()
  }
  await page.keyboard.press('Escape')
  await expect(dialog).toHaveCount(0)
  for (const [key, title] of [
    ['e', 'Export exactly this'],
    ['s', 'Save view'],
  ] as const) {
    await page.keyboard.press(key)
    await expect(dialog).toContainText(title)
    await page.keyboard.press('Escape')
    await expect(dialog).toHaveCount(0)
  }
})
