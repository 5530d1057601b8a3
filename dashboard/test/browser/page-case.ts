import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after } from 'node:test'
import type { Page } from '@playwright/test'
import type axe from 'axe-core'
import { startReceiver } from '../../../server/test/harness/webhook/receiver.ts'
import { type Dashboard, expect, startDashboard } from './dashboard.ts'
import { type DemoCompany, createDemo } from './demo-company.ts'
import { DESKTOP, PHONE } from './visit.ts'

/** Enough for every kind of row. The accessibility check takes longer the more elements a page has. */
const EVENTS = 60
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

declare global {
  interface Window {
    /** Only after `AXE` was evaluated. */
    axe: typeof axe
  }
}

/** A page in a certain state. */
export type PageCase = {
  name: string
  path: string
  /** Text that appears once the page has loaded its data. */
  shows: string | RegExp
  isSignedOut?: true
  /** What to do before the checks. */
  act?: (page: Page) => Promise<void>
  /** Selects what the case opens on the page. Colors are checked only there: another case checks the page. */
  opens?: string
}

/** A selector for `opens`. */
export const DIALOG = '[role=dialog]'
/** Marks what was visible on a desktop. */
const SEEN = 'data-colors-checked'

/** Creates a company with everything that a page can show, and a test for each sight. */
export async function testPages(
  casesOf: (demo: DemoCompany, receiverUrl: string) => readonly PageCase[],
): Promise<void> {
  const dashboard = await startDashboard()
  const receiver = await startReceiver()
  after(() => receiver[Symbol.asyncDispose]())
  const demo = await createDemo(dashboard.annals, receiver, { count: EVENTS, endMs: Date.now() })
  for (const sight of casesOf(demo, receiver.url)) testPage(dashboard, sight, demo)
}

function testPage(dashboard: Dashboard, sight: PageCase, { owner }: DemoCompany): void {
  const { open, openShared, browserTest } = dashboard
  browserTest(
    `${sight.name}: accessible in both themes, without horizontal scrolling on a phone`,
    async () => {
      const page = sight.isSignedOut ? await open() : await openShared({ member: owner })
      await page.emulateMedia({ colorScheme: 'light' })
      await page.setViewportSize(DESKTOP)
      await show(page, sight)
      await assertAccessible(page, sight.opens)
    },
  )
}

/**
 * Checks a page in both themes and on a phone, and the colors only within `part`. Starts in the light theme, and
 * ends in the dark one on a phone. Comparing colors takes half of the time, so it is done once per element and theme.
 */
export async function assertAccessible(page: Page, part = 'html'): Promise<void> {
  const colorsOf = `${part} *`
  await waitUntilSettled(page)
  await expect(page.locator(part).filter({ visible: true }).first()).toBeVisible()
  assert.deepEqual(await violationsOf(page, { colorsOf }), [], 'light')
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', 'dark')
  await waitUntilSettled(page)
  // A theme changes only colors.
  const rules = ['color-contrast']
  assert.deepEqual(await violationsOf(page, { rules, colorsOf }), [], 'dark')
  await markVisible(page)
  await page.setViewportSize(PHONE)
  await waitUntilSettled(page)
  assert.deepEqual(await overflowingElements(page), [])
  const isNew = `${colorsOf}:not([${SEEN}])`
  assert.deepEqual(await violationsOf(page, { colorsOf: isNew }), [], 'on a phone')
}

async function markVisible(page: Page): Promise<void> {
  await page.evaluate((name) => {
    for (const element of document.querySelectorAll('*')) {
      const isVisible = element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
      element.toggleAttribute(name, isVisible)
    }
  }, SEEN)
}

async function show(page: Page, { path, shows, act }: PageCase): Promise<void> {
  await (page.url() === 'about:blank' ? page.goto(path) : follow(page, path))
  await expect(page.getByText(shows).filter({ visible: true }).first()).toBeVisible()
  await act?.(page)
}

/**
 * Goes to a path like a link: loading the program and the accessibility checks again would take most of the CPU
 * time of a test. On the way, a page that doesn't exist closes what the last test opened.
 */
async function follow(page: Page, path: string): Promise<void> {
  await page.keyboard.press('Escape')
  await page.evaluate(() => {
    localStorage.clear()
    sessionStorage.clear()
    history.pushState(null, '', '/app/nothing')
  })
  await expect(page.getByText('Page not found')).toBeVisible()
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await page.evaluate((to) => history.pushState(null, '', to), path)
  if (path !== '/app/nothing') await expect(page.getByText('Page not found')).toHaveCount(0)
}

/** Waits until no placeholder is left and no animation is running. */
export async function waitUntilSettled(page: Page): Promise<void> {
  await expect(page.locator('.mantine-Skeleton-root, [aria-busy=true]')).toHaveCount(0)
  // A change of theme or size starts its animations in one of the next frames.
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  )
  await page.waitForFunction(() =>
    document.getAnimations().every(({ playState }) => playState !== 'running'),
  )
  await page.evaluate(() => document.fonts.ready.then(() => null))
}

/** The accessibility violations of the page, by all rules or by some. Colors are checked only within `colorsOf`. */
export async function violationsOf(
  page: Page,
  { rules, colorsOf = '*' }: { rules?: string[]; colorsOf?: string } = {},
): Promise<string[]> {
  // Once per page load, because evaluating it takes up to 0.2 s of CPU time.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE)
  const options: axe.RunOptions = {
    resultTypes: ['violations'],
    ...(rules && { runOnly: rules }),
  }
  const violations = await page.evaluate(
    async ({ given, selector }) => {
      window.axe.configure({ rules: [{ id: 'color-contrast', selector }] })
      return (await window.axe.run(given)).violations
    },
    { given: options, selector: colorsOf },
  )
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  )
}

/** The elements that make the page wider than the screen. */
async function overflowingElements(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const root = document.documentElement
    if (root.scrollWidth <= root.clientWidth) return []
    return [...document.body.querySelectorAll('*')]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
      .slice(0, 5)
      .map((element) => element.outerHTML.slice(0, 200))
  })
}

/** For `act`: clicks a button that opens a dialog. */
export function clickButton(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole('button', { name }).first().click()
    await expect(page.getByRole('dialog')).toBeVisible()
  }
}

/** For `act`: opens a tab. */
export function openTab(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole('tab', { name }).click()
    await expect(page.getByRole('tabpanel', { name })).toBeVisible()
  }
}
