import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/exports.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

const DAY_MS = 86_400_000

/** Noon on the 15th of the previous month. */
function midLastMonth(): Date {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15, 12))
}

async function openExplorer(): Promise<Page> {
  const company = await annals.createCompany()
  const eventAt = (action: string, at: Date) => ({
    category: 'c',
    action,
    timestamp: at.toISOString(),
  })
  await storeEvents(annals, company.workspaceKey, [
    eventAt('event.old', new Date('2020-02-03T04:05:06Z')),
    eventAt('event.month', midLastMonth()),
    eventAt('event.yesterday', new Date(Date.now() - DAY_MS)),
    eventAt('event.today', new Date()),
  ])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer')
  return page
}

async function choosePeriod(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: /^Time: / }).click()
  await page.getByRole('menuitem', { name }).click()
}

async function expectListed(page: Page, names: readonly string[]): Promise<void> {
  for (const name of ['today', 'yesterday', 'month', 'old']) {
    const cell = page.getByRole('gridcell', { name: `event.${name}` })
    await expect(cell, name).toHaveCount(names.includes(name) ? 1 : 0)
  }
}

const fromOf = (page: Page) => new URL(page.url()).searchParams.get('from')

browserTest('periods of the calendar show the events of those days', async () => {
  const page = await openExplorer()
  await choosePeriod(page, 'Today')
  await expectListed(page, ['today'])
  await choosePeriod(page, 'Yesterday')
  await expectListed(page, ['yesterday'])
  await choosePeriod(page, 'Last month')
  await expectListed(page, ['month'])
  await choosePeriod(page, 'All time')
  await expectListed(page, ['today', 'yesterday', 'month', 'old'])
  await expect(page.getByRole('button', { name: 'Time: All time' })).toBeVisible()
  // The chart starts with the first event, not in 1970.
  const chart = page.getByRole('region', { name: 'Events over time' })
  await expect(chart).toContainText('2020')
  await expect(chart).not.toContainText('1970')
  await choosePeriod(page, 'This week')
  await expect(page.getByRole('gridcell', { name: 'event.today' })).toHaveCount(1)
  await expect(page.getByRole('gridcell', { name: 'event.old' })).toHaveCount(0)
})

browserTest('days are chosen in a calendar, in local time or in UTC', async () => {
  const page = await openExplorer()
  await choosePeriod(page, 'Custom range…')
  const dialog = page.getByRole('dialog', { name: 'Custom range' })
  await dialog.getByRole('button', { name: 'Previous month' }).click()
  const month = midLastMonth().toLocaleString('en', { month: 'long', timeZone: 'UTC' })
  const day = (date: number) =>
    dialog.getByRole('button', { name: new RegExp(`\\b${date} ${month}|${month} ${date}\\b`) })
  await day(16).click()
  await expect(day(16)).toHaveAttribute('aria-pressed', 'true')
  // The first and the last day can be chosen in any order, by mouse or keyboard.
  await page.keyboard.press('ArrowLeft')
  await expect(day(15)).toBeFocused()
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Enter')
  for (const date of [14, 15, 16]) {
    await expect(day(date)).toHaveAttribute('aria-pressed', 'true')
  }
  await expect(day(17)).toHaveAttribute('aria-pressed', 'false')
  await dialog.getByRole('button', { name: 'Apply range' }).click()
  await expectListed(page, ['month'])
  // Midnight in Berlin.
  assert.match(fromOf(page) ?? '', /-13T2[23]:00:00\.000Z$/)

  await choosePeriod(page, 'Custom range…')
  await dialog.getByLabel('Time zone').selectOption('UTC')
  await expect(dialog.getByLabel('From')).toHaveValue(/-13T2[23]:00$/)
  await day(14).click()
  await day(14).click()
  await expect(dialog.getByLabel('From')).toHaveValue(/-14T00:00$/)
  await dialog.getByRole('button', { name: 'Apply range' }).click()
  await expect.poll(() => fromOf(page)).toMatch(/-14T00:00:00\.000Z$/)
  await expectListed(page, [])
})
