import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

/** A Wednesday, 11:30 in Berlin. */
const NOW = new Date('2026-03-18T10:30:00Z')
/** The last four are half an hour before or after midnight in Berlin. */
const EVENTS = {
  old: '2020-02-03T04:05:06Z',
  month: '2026-02-15T12:00:00Z',
  monday: '2026-03-16T22:30:00Z',
  yesterday: '2026-03-16T23:30:00Z',
  evening: '2026-03-17T22:30:00Z',
  today: '2026-03-17T23:30:00Z',
}

async function openExplorer(): Promise<Page> {
  const company = await annals.createCompany()
  const events = Object.entries(EVENTS).map(([name, timestamp]) => ({
    category: 'c',
    action: `event.${name}`,
    timestamp,
  }))
  await storeEvents(annals, company.workspaceKey, events)
  const page = await open({ member: await signInAs(annals, company, 'OWNER'), context: {} })
  await page.clock.setFixedTime(NOW)
  await page.goto('/app/explorer')
  return page
}

async function choosePeriod(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: /^Time: / }).click()
  await page.getByRole('menuitem', { name }).click()
}

async function expectListed(page: Page, names: readonly string[]): Promise<void> {
  for (const name of Object.keys(EVENTS)) {
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
  await expectListed(page, ['yesterday', 'evening'])
  await choosePeriod(page, 'This week')
  await expectListed(page, ['monday', 'yesterday', 'evening', 'today'])
  await choosePeriod(page, 'Last month')
  await expectListed(page, ['month'])
  await choosePeriod(page, 'All time')
  await expectListed(page, Object.keys(EVENTS))
  await expect(page.getByRole('button', { name: 'Time: All time' })).toBeVisible()
  // The chart starts with the first event, not in 1970.
  const chart = page.getByRole('region', { name: 'Events over time' })
  await expect(chart).toContainText('2020')
  await expect(chart).not.toContainText('1970')
})

browserTest('days are chosen in a calendar, in local time or in UTC', async () => {
  const page = await openExplorer()
  await choosePeriod(page, 'Custom range…')
  const dialog = page.getByRole('dialog', { name: 'Custom range' })
  await dialog.getByRole('button', { name: 'Previous month' }).click()
  const day = (date: number) =>
    dialog.getByRole('button', { name: new RegExp(`\\b${date} February|February ${date}\\b`) })
  await day(16).click()
  await expect(day(16)).toHaveAttribute('aria-pressed', 'true')
  // The first and the last day can be chosen in any order, by mouse or keyboard.
  await page.keyboard.press('ArrowLeft')
  await expect(day(15)).toBeFocused()
  // Focus moves within the key press: Enter may follow before the next frame.
  const focused = await page.evaluate(() => {
    const keys = { key: 'ArrowLeft', bubbles: true, cancelable: true }
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', keys))
    return document.activeElement?.getAttribute('aria-label')
  })
  assert.match(focused ?? '', /\b14 February|February 14\b/)
  await page.keyboard.press('Enter')
  for (const date of [14, 15, 16]) {
    await expect(day(date)).toHaveAttribute('aria-pressed', 'true')
  }
  await expect(day(17)).toHaveAttribute('aria-pressed', 'false')
  await dialog.getByRole('button', { name: 'Apply range' }).click()
  await expectListed(page, ['month'])
  // Midnight in Berlin.
  assert.equal(fromOf(page), '2026-02-13T23:00:00.000Z')

  await choosePeriod(page, 'Custom range…')
  await dialog.getByLabel('Time zone').selectOption('UTC')
  await expect(dialog.getByLabel('From')).toHaveValue('2026-02-13 23:00:00')
  await day(14).click()
  await day(14).click()
  await expect(dialog.getByLabel('From')).toHaveValue('2026-02-14 00:00:00')
  await dialog.getByLabel('From').fill('2026-02-30 12:00')
  await expect(dialog).toContainText('Enter a time such as')
  await expect(dialog.getByRole('button', { name: 'Apply range' })).toBeDisabled()
  await dialog.getByLabel('From').fill('2026-02-14')
  await dialog.getByRole('button', { name: 'Apply range' }).click()
  await expect.poll(() => fromOf(page)).toBe('2026-02-14T00:00:00.000Z')
  await expectListed(page, [])
})
