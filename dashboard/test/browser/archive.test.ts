import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { archiveAll } from '../../../server/test/harness/archive/archive.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'
import { holdRequests } from './held-requests.ts'
import { violationsOf } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

const DAY_MS = 86_400_000
const company = await annals.createCompany({ plan: 'STARTER' })
/** Its events are archived long before its hot time ends. */
const early = await annals.createCompany({ plan: 'ENTERPRISE' })
const workspaceId = company.workspace.id
const event = (nth: number, daysAgo: number) => ({
  timestamp: new Date(Date.now() - daysAgo * DAY_MS - nth * 1_000).toISOString(),
  category: 'auth',
  action: nth === 3 ? 'key.deleted' : 'user.login',
  metadata: { request: { id: `req_${nth}` } },
})
await storeEvents(annals, early.workspaceKey, [event(0, 3), event(1, 3), event(2, 9)])
for (const from of [0, 20]) {
  const events = Array.from({ length: 20 }, (_, nth) => event(from + nth, 40))
  await storeEvents(annals, company.workspaceKey, events)
  await archiveAll(annals)
}
await storeEvents(
  annals,
  company.workspaceKey,
  Array.from({ length: 5 }, (_, nth) => event(100 + nth, 1)),
)
await storeEvents(annals, early.workspaceKey, [event(200, 1)])
const owner = await signInAs(annals, company, 'OWNER')

const rows = (page: Page) => page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
const archive = (page: Page) => page.getByRole('region', { name: 'Archive' })
const button = (page: Page, name: string) => archive(page).getByRole('button', { name })

async function openExplorer(search = 'range=90d'): Promise<Page> {
  const page = await open({ member: owner })
  await page.goto(`/app/explorer?workspaceId=${workspaceId}&${search}`)
  return page
}

browserTest('a period that reaches into the archive says so, and searches it', async () => {
  const page = await openExplorer()
  await expect(rows(page)).toHaveCount(5)
  await expect(archive(page)).toContainText(/Events before .* may be archived\./)
  await button(page, 'Search the archive').click()
  await expect(archive(page)).toContainText('Found 40 archived events.')
  await expect(page.getByRole('grid', { name: 'Events' })).toHaveAttribute('aria-rowcount', '46')
  assert.deepEqual(await violationsOf(page), [])
  await openEvent(page, 'key.deleted')
  const panel = page.getByRole('complementary', { name: 'Event' })
  await expect(panel.getByText('Verified', { exact: true })).toBeVisible()
  await expect(panel).toContainText('This event is archived.')
  await expect(panel).toContainText('req_3')
})

browserTest('a search without hot results finds archived events by their metadata', async () => {
  const page = await openExplorer('range=90d&metadata=request.id%3Dreq_7')
  await expect(page.getByText(/^No events: /)).toBeVisible()
  await button(page, 'Search the archive').click()
  await expect(rows(page)).toHaveCount(1)
  await expect(archive(page)).toContainText('Found 1 archived event.')
  // Another query starts without the results of this one.
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect(rows(page)).toHaveCount(5)
  await expect(button(page, 'Search the archive')).toBeVisible()
})

browserTest('a period within the hot time offers no search of the archive', async () => {
  const page = await openExplorer('range=7d')
  await expect(rows(page)).toHaveCount(5)
  await expect(archive(page)).toHaveCount(0)
})

browserTest(
  'events that were archived within their hot time are not left out silently',
  async () => {
    const page = await open({ member: await signInAs(annals, early, 'OWNER') })
    const chart = page.getByRole('region', { name: 'Events over time' })
    await page.goto('/app/explorer?range=7d')
    await expect(chart.getByRole('status')).toHaveText('1 event')
    await expect(chart).toContainText('Archived events aren’t counted')
    await expect(chart).not.toContainText('vs. the previous')
    await button(page, 'Search the archive').click()
    await expect(archive(page)).toContainText('Found 2 archived events.')
    await page.getByRole('button', { name: 'Export events' }).click()
    await expect(page.getByRole('radio', { name: 'Hot and archived' })).toBeChecked()
    await page.keyboard.press('Escape')
    await page.goto('/app/explorer?range=24h')
    await expect(chart.getByRole('status')).toHaveText('0 events')
    await expect(archive(page)).toHaveCount(0)
    await expect(chart).not.toContainText('Archived events')
    await page.goto('/app/integrity')
    await expect(page.getByText('1 event received, 0 in the period before.')).toContainText(
      'Archived events aren’t counted.',
    )
  },
)

browserTest('a search of the archive can be canceled and continued', async () => {
  const page = await openExplorer()
  const held = await holdRequests(page, 'GET', '/dashboard/events/archived')
  await button(page, 'Search the archive').click()
  await expect.poll(held.heldCount).toBe(1)
  await button(page, 'Cancel').click()
  await expect(archive(page)).toContainText('Search canceled.')
  await expect(rows(page)).toHaveCount(5)
  held.release()
  await button(page, 'Continue searching').click()
  await expect(archive(page)).toContainText('Found 40 archived events.')
})

browserTest('a search says that the storage fails, and continues when it is back', async () => {
  const page = await openExplorer()
  const folder = new URL(annals.archiveUrl).pathname.replace(/\/$/, '')
  renameSync(folder, `${folder}-away`)
  try {
    await button(page, 'Search the archive').click()
    await expect(archive(page).getByRole('alert')).toContainText(/archive/)
    await expect(archive(page)).toContainText('Search failed.')
  } finally {
    renameSync(`${folder}-away`, folder)
  }
  await button(page, 'Continue searching').click()
  await expect(archive(page)).toContainText('Found 40 archived events.')
  await expect(archive(page).getByRole('alert')).toHaveCount(0)
})
