import assert from 'node:assert/strict'
import { after } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'
import { startReceiver } from '../../../server/test/harness/receiver.ts'
import { ANY_DESTINATION } from '../../../server/test/harness/webhooks.ts'
import { type Dashboard, expect, startDashboard } from './dashboard.ts'
import { type DemoCompany, createDemo } from './demo-company.ts'
import { DESK } from './visit.ts'

/** Enough for every kind of row. The check takes as long as the page has elements. */
const EVENTS = 60
const SMALL = { width: 390, height: 844 }

/** A page in a certain state. */
export type Sight = {
  name: string
  path: string
  /** Seen once the page has what it is about. */
  shows: string | RegExp
  isSignedOut?: true
  /** What to do there before it is looked at. */
  act?: (page: Page) => Promise<void>
}

/** Everything that a page could show, and a test for each sight of it. */
export async function promiseSights(
  sightsOf: (demo: DemoCompany, receiverUrl: string) => readonly Sight[],
): Promise<void> {
  const dashboard = await startDashboard({ env: ANY_DESTINATION })
  const receiver = await startReceiver()
  after(() => receiver[Symbol.asyncDispose]())
  const demo = await createDemo(dashboard.annals, receiver, { count: EVENTS, endMs: Date.now() })
  for (const sight of sightsOf(demo, receiver.url)) promiseSight(dashboard, sight, demo)
}

function promiseSight({ open, promise }: Dashboard, sight: Sight, { owner }: DemoCompany): void {
  promise(
    `${sight.name}: no barrier in either theme, and nothing beyond the edge of a phone`,
    async () => {
      const page = await open({ isShared: true, ...(!sight.isSignedOut && { member: owner }) })
      await page.setViewportSize(DESK)
      await page.emulateMedia({ colorScheme: 'light' })
      await show(page, sight)
      assert.deepEqual(await barriersOf(page), [], 'light')
      await page.emulateMedia({ colorScheme: 'dark' })
      await settle(page)
      // A theme changes nothing but colors.
      assert.deepEqual(await barriersOf(page, ['color-contrast']), [], 'dark')
      await page.setViewportSize(SMALL)
      await settle(page)
      assert.deepEqual(await beyondEdge(page), [])
      assert.deepEqual(await barriersOf(page), [], 'on a phone')
    },
  )
}

async function show(page: Page, { path, shows, act }: Sight): Promise<void> {
  await page.goto(path)
  await expect(page.getByText(shows).filter({ visible: true }).first()).toBeVisible()
  await act?.(page)
  await settle(page)
}

/** Until nothing on the page stands for something that is still to come, and no color changes any more. */
async function settle(page: Page): Promise<void> {
  await expect(page.locator('.mantine-Skeleton-root, [aria-busy=true]')).toHaveCount(0)
  await page.waitForFunction(() =>
    document.getAnimations().every(({ playState }) => playState !== 'running'),
  )
  await page.evaluate(() => document.fonts.ready.then(() => null))
}

/** Accessibility faults of the page as it stands, by all rules or by some. */
export async function barriersOf(page: Page, rules?: string[]): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .setLegacyMode(true)
    .options({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })
    .analyze()
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  )
}

/** What makes the page wider than the screen. */
async function beyondEdge(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const root = document.documentElement
    if (root.scrollWidth <= root.clientWidth) return []
    return [...document.body.querySelectorAll('*')]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
      .slice(0, 5)
      .map((element) => element.outerHTML.slice(0, 200))
  })
}

/** For `act`: a button that opens a dialog. */
export function clickButton(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole('button', { name }).first().click()
    await expect(page.getByRole('dialog')).toBeVisible()
  }
}

/** For `act`. */
export function openTab(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole('tab', { name }).click()
    await expect(page.getByRole('tabpanel', { name })).toBeVisible()
  }
}
