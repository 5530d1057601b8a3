import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
const [first, second] = company.workspaces
assert(first && second)
await storeEvents(annals, second.workspaceKey, [{ category: 'c', action: 'user.login' }])
const owner = await signInAs(annals, company, 'OWNER')
const body = {
  name: 'Deleted invoices',
  visibility: 'WORKSPACE',
  workspaceId: second.id,
  query: { action: 'invoice.deleted', range: '30d' },
}
await owner.call('POST', '/dashboard/explorer/views', { body })
const { json } = await owner.call('GET', `/dashboard/events?workspaceId=${second.id}`)
const eventId: string = json.data[0].id

const input = (page: Page) => page.getByRole('combobox', { name: 'Go to' })
const options = (page: Page) => page.getByRole('listbox', { name: 'Results' }).getByRole('option')

async function type(page: Page, text: string): Promise<void> {
  await page.keyboard.press('Control+k')
  await expect(input(page)).toBeFocused()
  await page.keyboard.type(text)
}

/** Types a text and runs the first command, which must have this name. */
async function go(page: Page, text: string, name: string | RegExp): Promise<void> {
  await type(page, text)
  await expect(options(page).and(page.getByRole('option', { selected: true }))).toHaveText(name)
  await page.keyboard.press('Enter')
  await expect(input(page)).toHaveCount(0)
}

browserTest('the palette goes to pages, workspaces, views and events by keyboard', async () => {
  const page = await open({ member: owner })
  await page.goto('/app/explorer')
  await expect(page.getByRole('heading', { name: 'Explorer' })).toBeVisible()
  await go(page, 'integ', /^Integrity/)
  await expect(page.getByRole('heading', { name: 'Integrity', level: 1 })).toBeVisible()
  await go(page, 'stag', /^StagingWorkspace/)
  await expect(page.getByRole('combobox', { name: 'Workspace' })).toHaveValue(second.id)
  await go(page, 'invoices del', /^Deleted invoicesView/)
  await expect(
    page.getByRole('button', { name: 'Remove filter action: invoice.deleted' }),
  ).toBeVisible()
  await go(page, eventId, new RegExp(`^${eventId}Event`))
  const event = page.getByRole('complementary', { name: 'Event' })
  await expect(event.getByRole('heading', { name: 'user.login' })).toBeVisible()

  await type(page, 'e')
  await page.keyboard.press('ArrowDown')
  await expect(options(page).nth(1)).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  await expect(options(page).last()).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.press('Escape')
  await expect(input(page)).toHaveCount(0)
  await expect(event).toBeVisible()
})

browserTest(
  'the palette offers only what the member can see, and its shortcut is listed',
  async () => {
    const viewer = await signInAs(annals, company, 'VIEWER', [first.id])
    const page = await open({ member: viewer })
    await page.goto('/app/explorer')
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
    await expect(page.getByRole('dialog')).toContainText('Go to a page, workspace, view')
    await page.keyboard.press('Escape')
    await expect(page.getByRole('dialog')).toHaveCount(0)
    await page.getByRole('button', { name: 'Go to' }).click()
    await expect(options(page).filter({ hasText: 'Integrity' })).toHaveCount(1)
    await expect(options(page).filter({ hasText: 'Production' })).toHaveCount(1)
    for (const hidden of ['Members', 'Activity', 'Staging', 'Deleted invoices']) {
      await expect(options(page).filter({ hasText: hidden })).toHaveCount(0)
    }
  },
)

browserTest(
  'recent searches are offered to the member who made them, until they sign out',
  async () => {
    const page = await open({ member: await signInAs(annals, company, 'OWNER'), context: {} })
    await page.addInitScript(keepTimers)
    await page.goto('/app/explorer?workspaceId=all&text=inv_1018')
    const stored = () =>
      page.evaluate(() => Object.entries(localStorage).filter(([key]) => key.includes('recent')))
    await expect.poll(async () => JSON.stringify(await stored())).toContain('inv_1018')
    await page.goto('/app/integrity')
    await expect(page.getByRole('heading', { name: 'Integrity', level: 1 })).toBeVisible()
    await go(page, '1018', /^inv_1018Recent search/)
    await expect(page.getByRole('searchbox')).toHaveValue('inv_1018')
    await go(page, 'user.login', /^Search events for “user\.login”/)
    await expect(page.getByRole('gridcell', { name: 'user.login' })).toBeVisible()
    await page.getByRole('button', { name: /@/ }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await expect(page.getByLabel('Email')).toBeVisible()
    assert.deepEqual(await stored(), [])
    assert((await page.evaluate(runKeptTimers)) > 0)
    assert.deepEqual(await stored(), [])
  },
)

/** In the page: keeps what waits for a search to be typed, which takes a second. */
function keepTimers(): void {
  const kept: (() => void)[] = []
  const start = window.setTimeout
  const keep = (run: () => void, ms?: number) => {
    if (ms === 1_000) kept.push(run)
    return start(run, ms)
  }
  Object.assign(window, { kept, setTimeout: keep })
}

/** In the page: as if they had been due while the member signed out, before the page stopped them. */
function runKeptTimers(): number {
  const kept: (() => void)[] = Reflect.get(window, 'kept')
  for (const run of kept) run()
  return kept.length
}
