import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after } from 'node:test'
import type { Page } from '@playwright/test'
import type axe from 'axe-core'
import { rounds } from '../../../server/test/harness/timing/fault-rounds.ts'
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

const THEMES = ['light', 'dark'] as const
type Theme = (typeof THEMES)[number]

/** A selector for `opens`. */
export const DIALOG = '[role=dialog]'
/** Marks what was visible on a desktop. */
const SEEN = 'data-colors-checked'
/**
 * How many of the two themes are checked on a desktop. `npm test` checks one on a desktop and the other one on a
 * phone, in turns, and `npm run fault` checks both on a desktop.
 */
const DESKTOP_THEMES = rounds(1, 2)

/** Creates a company with everything that a page can show, and a test for each sight. */
export async function testPages(
  casesOf: (demo: DemoCompany, receiverUrl: string) => readonly PageCase[],
): Promise<void> {
  const dashboard = await startDashboard()
  const receiver = await startReceiver()
  after(() => receiver[Symbol.asyncDispose]())
  const demo = await createDemo(dashboard.annals, receiver, { count: EVENTS, endMs: Date.now() })
  for (const [nth, sight] of casesOf(demo, receiver.url).entries()) {
    testPage(dashboard, sight, { owner: demo.owner, nth })
  }
}

function testPage(
  { open, openShared, browserTest }: Dashboard,
  sight: PageCase,
  { owner, nth }: Pick<DemoCompany, 'owner'> & { nth: number },
): void {
  browserTest(
    `${sight.name}: accessible in both themes, without horizontal scrolling on a phone`,
    async () => {
      const page = sight.isSignedOut ? await open() : await openShared({ member: owner })
      await page.setViewportSize(DESKTOP)
      await show(page, sight)
      await assertAccessible(page, sight.opens, nth % 2 === 0 ? THEMES : THEMES.toReversed())
    },
  )
}

/**
 * Checks a page in both themes and on a phone, and the colors only within `part`. Starts in the first theme, and
 * ends in the last one on a phone. Comparing colors takes half of the time, so it is done once per element and theme.
 */
export async function assertAccessible(
  page: Page,
  part = 'html',
  themes: readonly Theme[] = THEMES,
): Promise<void> {
  const colorsOf = `${part} *`
  await assertThemesAccessible(page, { part, themes: themes.slice(0, DESKTOP_THEMES) })
  await (DESKTOP_THEMES === themes.length
    ? markVisible(page)
    : chooseTheme(page, themes.at(-1) ?? 'dark'))
  await page.setViewportSize(PHONE)
  await waitUntilSettled(page)
  assert.deepEqual(await overflowingElements(page), [])
  const isNew = `${colorsOf}:not([${SEEN}])`
  // Another case checks the page behind `part` on a phone.
  assert.deepEqual(await violationsOf(page, { within: part, colorsOf: isNew }), [], 'on a phone')
}

async function chooseTheme(page: Page, theme: Theme): Promise<void> {
  await page.emulateMedia({ colorScheme: theme })
  await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', theme)
  await waitUntilSettled(page)
}

/** Checks a page in some themes, by all rules in the first one: a theme changes only colors. */
export async function assertThemesAccessible(
  page: Page,
  { part = 'html', themes = THEMES }: { part?: string; themes?: readonly Theme[] } = {},
): Promise<void> {
  for (const [nth, theme] of themes.entries()) {
    await chooseTheme(page, theme)
    await expect(page.locator(part).filter({ visible: true }).first()).toBeVisible()
    const rules = nth === 0 ? {} : { rules: ['color-contrast'] }
    assert.deepEqual(await violationsOf(page, { ...rules, colorsOf: `${part} *` }), [], theme)
  }
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

/** The accessibility violations `within` an element, by all rules or by some. Colors are checked only for `colorsOf`. */
export async function violationsOf(
  page: Page,
  {
    rules,
    within = 'html',
    colorsOf = '*',
  }: { rules?: string[]; within?: string; colorsOf?: string } = {},
): Promise<string[]> {
  // Once per page load, because evaluating it takes up to 0.2 s of CPU time.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE)
  const options: axe.RunOptions = {
    resultTypes: ['violations'],
    ...(rules && { runOnly: rules }),
  }
  const violations = await page.evaluate(
    async ({ given, context, selector }) => {
      window.axe.configure({ rules: [{ id: 'color-contrast', selector }] })
      return (await window.axe.run(context, given)).violations
    },
    { given: options, context: within, selector: colorsOf },
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
