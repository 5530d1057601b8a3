import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { walkExplorer } from '../../../server/test/harness/dashboard/explorer.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'
import { PHONE } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

const MINUTE_MS = 60_000
const company = await annals.createCompany()
const workspaceId = company.workspace.id
const owner = await signInAs(annals, company, 'OWNER')
const nowMs = Date.now()
const event = (action: string, minutesAgo: number, ip: string) => ({
  category: 'auth',
  action,
  timestamp: new Date(nowMs - minutesAgo * MINUTE_MS).toISOString(),
  resource: { type: 'doc', id: `doc-${ip}` },
  metadata: { client: { ip } },
})
await storeEvents(annals, company.workspaceKey, [
  event('on.time', 2, '192.0.2.1'),
  event('in.time', 1, '192.0.2.1'),
])
await storeEvents(annals, company.workspaceKey, [
  event('late.first', 90, '192.0.2.2'),
  event('late.second', 120, '192.0.2.2'),
  event('late.third', 60, '192.0.2.3'),
])
const stored = await walkExplorer(owner, { limit: '10', sort: 'receivedAt' })
const receivedFrom: string = stored[2].receivedAt

const explorer = `/app/explorer?workspaceId=${workspaceId}&range=24h`
const list = (page: Page) => page.getByRole('grid', { name: 'Events' })
const total = (page: Page) =>
  page.getByRole('region', { name: 'Events over time' }).getByRole('status')

async function expectActions(page: Page, wanted: readonly string[]): Promise<void> {
  await expect(async () => {
    const cells = await list(page)
      .locator('[role=row][data-id] [data-column=action]')
      .allInnerTexts()
    assert.deepEqual(
      cells.map((text) => text.trim()),
      wanted,
    )
  }).toPass()
}

browserTest(
  'the list is sorted by the time of receipt, from its header or the menu, and says so',
  async () => {
    const page = await open({ member: owner })
    await page.goto(explorer)
    const byTime = ['in.time', 'on.time', 'late.third', 'late.first', 'late.second']
    const byReceipt = ['late.third', 'late.second', 'late.first', 'in.time', 'on.time']
    await expectActions(page, byTime)
    await page.getByRole('button', { name: /^Columns, order/ }).click()
    await page.getByLabel('Sort by').selectOption('receivedAt')
    await page.keyboard.press('Escape')
    await expectActions(page, byReceipt)
    const head = list(page).getByRole('columnheader', { name: /^Received/ })
    await expect(head).toHaveAttribute('aria-sort', 'descending')
    await page.reload()
    await expectActions(page, byReceipt)
    await list(page).getByRole('columnheader', { name: /^Time/ }).getByRole('button').click()
    await expectActions(page, byTime)
    await expect(page).not.toHaveURL(/sort=/)
  },
)

browserTest(
  'on a phone, the menu of the list changes its order, and its head names it',
  async () => {
    const page = await open({ member: owner, context: { viewport: PHONE } })
    await page.goto(explorer)
    const heads = list(page).locator('[role=columnheader][data-column]')
    await expect(heads).toHaveText([/^Time/])
    await page.getByRole('button', { name: 'Order, density and page size' }).click()
    await page.getByLabel('Sort by').selectOption('receivedAt')
    await page.keyboard.press('Escape')
    await expect(heads).toHaveText([/^Received/])
    const first = list(page).locator('[role=row][data-id]').first()
    await expect(first).toContainText('late.third')
  },
)

browserTest(
  'a range of times of receipt is a filter, which the count, the view and the export share',
  async () => {
    const page = await open({ member: owner })
    await page.goto(explorer)
    await expect(total(page)).toHaveText('5 events')
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('option', { name: 'received' }).click()
    const dialog = page.getByRole('dialog', { name: 'Received' })
    await dialog.getByRole('button', { name: 'Apply range' }).click()
    await expect(page.getByRole('button', { name: /^Remove filter received:/ })).toBeVisible()
    await expect(page).toHaveURL(/receivedFrom=.+receivedTo=/)

    await page.goto(`${explorer}&receivedFrom=${receivedFrom}&sort=receivedAt`)
    await expectActions(page, ['late.third', 'late.second', 'late.first'])
    await expect(total(page)).toHaveText('3 events')
    await page.keyboard.press('e')
    const exported = page.getByRole('dialog', { name: 'Export these events' })
    await expect(exported).toContainText('received: from')
    await expect(exported.getByRole('status')).toContainText('3 rows')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: /^Remove filter received:/ }).click()
    await expect(total(page)).toHaveText('5 events')
    await expectActions(page, ['late.third', 'late.second', 'late.first', 'in.time', 'on.time'])

    // An event that arrived late is listed with those that arrived with it, whatever their time.
    await page.goto(`${explorer.replace('24h', '1h')}&action=on.time`)
    await openEvent(page, 'on.time')
    await page.getByRole('button', { name: 'Around this time' }).click()
    await expectActions(page, ['late.third', 'late.second', 'late.first', 'in.time', 'on.time'])
  },
)

browserTest(
  'the histogram groups by resource ID and by a metadata key, and a value filters the list',
  async () => {
    const page = await open({ member: owner })
    await page.goto(explorer)
    const chart = page.getByRole('region', { name: 'Events over time' })
    await chart.getByLabel('Group by').selectOption('resourceId')
    await expect(chart.getByTitle('Filter by resource ID: doc-192.0.2.1')).toContainText('2')
    await chart.getByLabel('Group by').selectOption('metadata.client.ip')
    await expect(page).toHaveURL(/by=metadata\.client\.ip/)
    const value = chart.getByTitle('Filter by metadata.client.ip: 192.0.2.2')
    await expect(value).toContainText('2')
    await value.click()
    await expectActions(page, ['late.first', 'late.second'])
    await expect(
      page.getByRole('button', { name: 'Remove filter metadata.client.ip: 192.0.2.2' }),
    ).toBeVisible()
  },
)
