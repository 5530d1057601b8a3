import type { Locator, Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

browserTest(
  'signing in, searching, and opening and closing an event work with the keyboard alone',
  async () => {
    const company = await annals.createCompany()
    const actions = ['user.login', 'invoice.deleted', 'invoice.paid', 'invoice.created']
    await storeEvents(
      annals,
      company.workspaceKey,
      actions.map((action) => ({ category: 'c', action, actor: { email: 'ana@example.com' } })),
    )
    const page = await open()
    const { keyboard } = page
    await page.goto('/app/explorer')
    await expect(page.getByLabel('Email')).toBeFocused()
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
  },
)

browserTest('the question mark lists every shortcut, and each one opens what it says', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, [{ category: 'c', action: 'user.login' }])
  const page = await open()
  await page.goto('/app/explorer')
  await page.getByLabel('Email').fill(company.user.email)
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
    ['e', 'Export these events'],
    ['s', 'Save view'],
  ] as const) {
    await page.keyboard.press(key)
    await expect(dialog).toContainText(title)
    await page.keyboard.press('Escape')
    await expect(dialog).toHaveCount(0)
  }
})

browserTest('the bracket keys move to the previous period and back', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, [{ category: 'c', action: 'user.login' }])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer?range=1h')
  await expect(page.getByRole('gridcell', { name: 'user.login' })).toBeVisible()
  await page.keyboard.press('[')
  await expect.poll(() => new URL(page.url()).searchParams.has('to')).toBe(true)
  await expect(page.getByRole('gridcell', { name: 'user.login' })).toHaveCount(0)
  await page.keyboard.press(']')
  await expect.poll(() => new URL(page.url()).searchParams.has('to')).toBe(false)
  await expect(page.getByRole('gridcell', { name: 'user.login' })).toBeVisible()
})

browserTest('closing a dialog or a menu restores the focus', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, [{ category: 'c', action: 'user.login' }])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer')
  const row = page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
  await row.focus()
  for (const key of ['e', 's', '?']) {
    await page.keyboard.press(key)
    await closeAndExpect(page, row)
  }
  await chooseByKeyboard(page, page.getByRole('button', { name: /^Time:/ }), 'Custom range…')
  await closeAndExpect(page, page.getByRole('button', { name: /^Time:/ }))

  await page.keyboard.press('s')
  await page.getByLabel('Name').fill('Logins')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  const views = page.getByRole('button', { name: 'Logins', exact: true })
  await views.focus()
  await page.keyboard.press('Enter')
  await expect(page.locator('[role=dialog]:focus-within')).toBeVisible()
  await page.getByRole('button', { name: 'Delete view Logins' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete view' })).toBeDisabled()
  await closeAndExpect(page, views)

  await page.goto('/app/keys')
  const actions = page.getByRole('button', { name: 'Actions for Production key' })
  for (const item of ['Rename key', 'Rotate key', 'Revoke key']) {
    await chooseByKeyboard(page, actions, item)
    await closeAndExpect(page, actions)
  }
  const create = page.getByRole('button', { name: 'Create key' })
  await create.focus()
  await page.keyboard.press('Enter')
  await closeAndExpect(page, create)
})

async function chooseByKeyboard(page: Page, target: Locator, item: string): Promise<void> {
  await target.focus()
  await page.keyboard.press('Enter')
  // The menu takes the focus when it opens.
  await expect(page.locator('[role=menu]:focus-within')).toBeVisible()
  await page.getByRole('menuitem', { name: item }).focus()
  await page.keyboard.press('Enter')
}

async function closeAndExpect(page: Page, focused: Locator): Promise<void> {
  await expect(page.getByRole('dialog')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(focused).toBeFocused()
}
