import assert from 'node:assert/strict'
import type { CDPSession, Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'
import { waitUntilSettled } from './page-case.ts'
import { TIMEOUT_MS, type Visitor } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

const DAY_MS = 86_400_000
const company = await annals.createCompany()
await storeEvents(
  annals,
  company.workspaceKey,
  demoEvents({ count: 400, endMs: Date.now(), spanMs: DAY_MS * 6 }),
)
const member = await signInAs(annals, company, 'OWNER')

async function openBars(context?: Visitor['context']): Promise<Page> {
  const page = await open({ member, ...(context && { context }) })
  await page.goto('/app/explorer?range=7d')
  await expect(total(page)).toHaveText('400 events')
  return page
}

const region = (page: Page) => page.getByRole('region', { name: 'Events over time' })
const total = (page: Page) => region(page).getByRole('status')
const bars = (page: Page) => region(page).getByRole('slider', { name: 'Events over time' })
const valueText = async (page: Page) => (await bars(page).getAttribute('aria-valuetext')) ?? ''
const timesOf = (page: Page) => {
  const parameters = new URL(page.url()).searchParams
  return { from: parameters.get('from'), to: parameters.get('to') }
}

browserTest('moving between bars, selecting and zooming work with the keyboard alone', async () => {
  const page = await openBars()
  const { keyboard } = page
  await page.getByRole('combobox', { name: 'Group by' }).focus()
  await keyboard.press('Tab')
  await expect(bars(page)).toBeFocused()
  await expect(bars(page)).toHaveAccessibleDescription(/Enter zooms in/)
  const count = Number(await bars(page).getAttribute('aria-valuemax'))
  await expect(bars(page)).toHaveAttribute('aria-valuenow', String(count))

  await keyboard.press('Home')
  await expect(bars(page)).toHaveAttribute('aria-valuenow', '1')
  await keyboard.press('End')
  await expect(bars(page)).toHaveAttribute('aria-valuenow', String(count))
  const newest = await valueText(page)
  await keyboard.press('ArrowLeft')
  await expect(bars(page)).toHaveAttribute('aria-valuenow', String(count - 1))
  assert.notEqual(await valueText(page), newest)
  assert.match(await valueText(page), /^\d+ \w+, [\d:]+ – .+: [\d,]+ events?/)

  for (let step = 0; step < 9; step += 1) await keyboard.press('Shift+ArrowLeft')
  await expect(bars(page)).toHaveAttribute('aria-valuetext', /^10 bars, /)
  await keyboard.press('Escape')
  await expect(bars(page)).not.toHaveAttribute('aria-valuetext', / bars, /)
  await keyboard.press('Shift+Home')
  await expect(bars(page)).toHaveAttribute('aria-valuetext', / bars, /)
  const chosen = /: ([\d,]+ events?)$/.exec(await valueText(page))?.[1]
  assert(chosen)
  await keyboard.press('Enter')
  await expect.poll(() => timesOf(page).from).not.toBeNull()
  await expect(total(page)).toHaveText(chosen)
  await expect(bars(page)).toBeFocused()
})

browserTest('Escape in the histogram clears the selection without closing the event', async () => {
  const page = await openBars()
  await page.getByRole('grid', { name: 'Events' }).locator('[data-id]').first().click()
  const event = page.getByRole('complementary', { name: 'Event' })
  await expect(event).toBeVisible()
  await page.getByRole('combobox', { name: 'Group by' }).focus()
  await page.keyboard.press('Tab')
  await expect(bars(page)).toBeFocused()
  await page.keyboard.press('Shift+ArrowLeft')
  await expect(bars(page)).toHaveAttribute('aria-valuetext', / bars, /)
  await page.keyboard.press('Escape')
  await expect(bars(page)).not.toHaveAttribute('aria-valuetext', / bars, /)
  await expect(event).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(event).toHaveCount(0)
})

browserTest('every bar with events is visible, and no bar or label exceeds the chart', async () => {
  const busy = await annals.createCompany()
  const event = { category: 'auth', action: 'user.login' }
  const timestamp = new Date(Date.now() - 10 * DAY_MS).toISOString()
  await storeEvents(annals, busy.workspaceKey, [
    { category: 'rare', action: 'key.rotated', timestamp },
    ...Array.from({ length: 624 }, () => event),
  ])
  const page = await open({ member: await signInAs(annals, busy, 'OWNER') })
  await page.goto('/app/explorer?range=30d')
  await expect(total(page)).toHaveText('625 events')
  const readBoxes = () =>
    region(page)
      .locator('svg:has(g > text)')
      .evaluate((svg) => {
        const boxesOf = (selector: string) =>
          [...svg.querySelectorAll(selector)].map((part) => part.getBoundingClientRect().toJSON())
        const [chart] = [svg.getBoundingClientRect().toJSON()]
        return {
          chart,
          lines: boxesOf('g > path'),
          bars: boxesOf(':scope > path'),
          labels: boxesOf('text'),
        }
      })
  for (const width of [1_280, 390]) {
    await page.setViewportSize({ width, height: 844 })
    // The count is updated a moment before the chart is redrawn.
    await expect(async () => {
      const { chart, lines, bars, labels } = await readBoxes()
      const [tops, floors] = [lines.map(({ top }) => top), lines.map(({ bottom }) => bottom)]
      assert(lines.length > 1 && bars.length === 2 && chart.width <= width)
      assert(Math.max(...floors) - Math.min(...tops) >= 120, 'the height of the plot')
      for (const { top, height } of bars) {
        // A grid line is centered on a pixel.
        assert(Math.min(...tops) - 1 <= top && height >= 2, JSON.stringify(bars))
      }
      for (const { left, right } of labels) assert(left >= chart.left && right <= chart.right)
    }).toPass({ timeout: TIMEOUT_MS })
  }
})

browserTest('bars of days start at midnight of the viewer’s time zone', async () => {
  for (const [timezoneId, from, to] of [
    ['Asia/Kolkata', '2026-06-01T18:30:00Z', '2026-08-30T18:30:00Z'],
    // The clocks go back during this time.
    ['Europe/Berlin', '2025-08-20T22:00:00Z', '2025-11-18T23:00:00Z'],
  ] as const) {
    const page = await open({ member, context: { timezoneId } })
    await page.goto(`/app/explorer?from=${from}&to=${to}`)
    await bars(page).focus()
    for (const key of ['Home', 'End']) {
      await page.keyboard.press(key)
      await expect(bars(page)).toHaveAttribute('aria-valuetext', /, 00:00:00 – .+, 00:00:00: 0 /)
    }
  }
})

browserTest(
  'a name keeps its color when the query changes, after a reload and in both themes',
  async () => {
    const page = await openBars()
    const kinds = region(page).getByRole('button', { name: /events, filter by this/ })
    const colors = () =>
      kinds.evaluateAll((all) =>
        Object.fromEntries(
          all.map((kind) => [
            kind.querySelector('.truncate')?.textContent ?? '',
            getComputedStyle(kind.querySelector('i') ?? kind).backgroundColor,
          ]),
        ),
      )
    const light = await colors()
    assert.equal(new Set(Object.values(light)).size, 5, 'one color per category')
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(colors).not.toEqual(light)
    const dark = await colors()
    assert.equal(new Set(Object.values(dark)).size, 5)
    // The rarest category, which was the last of the legend, is now the first.
    await kinds.last().click()
    await expect(kinds).toHaveCount(1)
    const [rare = ''] = Object.keys(await colors())
    assert.equal((await colors())[rare], dark[rare])
    await page.emulateMedia({ colorScheme: 'light' })
    await page.reload()
    await expect(kinds).toHaveCount(1)
    await expect.poll(async () => (await colors())[rare]).toBe(light[rare])
  },
)

browserTest(
  'times are in the viewer’s time zone or in UTC, which the page shows and remembers',
  async () => {
    const page = await openBars({ timezoneId: 'Asia/Kabul' })
    const head = page.getByRole('grid').getByRole('columnheader', { name: /^Time/ })
    await expect(head).toHaveText('Time (Kabul)')
    const zone = region(page).getByRole('combobox', { name: 'Time zone' })
    await expect(zone).toHaveValue('Asia/Kabul')
    const cell = page.locator('[data-id]').first().locator('[data-column=time]')
    const local = (await cell.textContent()) ?? ''
    await zone.selectOption('UTC')
    await expect(head).toHaveText('Time (UTC)')
    await expect(cell).not.toHaveText(local)
    const utc = (await cell.textContent()) ?? ''
    assert.equal((24 * 60 + minutesOf(local) - minutesOf(utc)) % (24 * 60), 4 * 60 + 30)
    await page.reload()
    await expect(head).toHaveText('Time (UTC)')
    await expect(cell).toHaveText(utc)
    await cell.click()
    const when = page.getByRole('region', { name: 'When' })
    for (const text of [local, utc]) await expect(when).toContainText(clockOf(text))
    await expect(when).toContainText('GMT+4:30')
    await page.getByRole('button', { name: /^Time: / }).click()
    await page.getByRole('menuitem', { name: 'Custom range…' }).click()
    await expect(page.getByRole('dialog').getByLabel('Time zone')).toHaveValue('UTC')
    const until = Date.parse(`${await page.getByLabel('To (exclusive)').inputValue()}Z`)
    assert(Math.abs(until - Date.now()) < DAY_MS / 8, 'the range ends now')
  },
)

const clockOf = (text: string) => /\d\d:\d\d:\d\d\.\d\d\d/.exec(text)?.[0] ?? ''

function minutesOf(text: string): number {
  const [hours, minutes] = clockOf(text).split(':').map(Number)
  assert(hours !== undefined && minutes !== undefined, text)
  return hours * 60 + minutes
}

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

browserTest('on a phone, swiping sideways over the histogram zooms in to that period', async () => {
  const page = await openBars(PHONE)
  const fingers = await page.context().newCDPSession(page)
  await drag(page, fingers, { x: 0.5, y: 0 })
  await expect.poll(() => timesOf(page).from).not.toBeNull()
  const { from, to } = timesOf(page)
  const days = (Date.parse(to ?? '') - Date.parse(from ?? '')) / DAY_MS
  assert(days > 3 && days < 4.5, `${days} days`)
  assert.equal(await page.evaluate(() => window.scrollY), 0)
})

browserTest('on a phone, swiping up over the histogram scrolls the page', async () => {
  const page = await openBars(PHONE)
  const fingers = await page.context().newCDPSession(page)
  await drag(page, fingers, { x: 0.05, y: -2 })
  await expect.poll(() => page.evaluate(() => window.scrollY)).toBeGreaterThan(50)
  assert.equal(timesOf(page).from, null)
})

async function boxOf(page: Page) {
  const box = await bars(page).boundingBox()
  assert(box)
  return box
}

/** Drags from a point in the bars, by a share of their width and height. */
async function drag(page: Page, fingers: CDPSession, by: { x: number; y: number }): Promise<void> {
  const box = await boxOf(page)
  const touch = (type: 'touchStart' | 'touchMove', share: number) =>
    fingers.send('Input.dispatchTouchEvent', {
      type,
      touchPoints: [
        { x: box.x + box.width * (0.25 + by.x * share), y: box.y + 40 + box.height * by.y * share },
      ],
    })
  await touch('touchStart', 0)
  for (let step = 1; step <= 10; step += 1) await touch('touchMove', step / 10)
  await fingers.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
}

browserTest('charts are shown even if the browser reports an invalid language', async () => {
  const page = await open({ member, context: {} })
  await page.addInitScript(() =>
    Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' }),
  )
  await page.goto('/app/explorer?range=7d')
  await expect(total(page)).toHaveText('400 events')
  await expect(bars(page)).toBeVisible()
  await page.goto('/app/company/usage')
  await expect(page.getByRole('img', { name: /in 30 days/ })).toBeVisible()
})

browserTest('URLs contain plain values, and old URLs with quotes still work', async () => {
  const page = await openBars()
  await page.getByRole('switch', { name: /^Live/ }).check({ force: true })
  await expect.poll(() => new URL(page.url()).search).toContain('live=1')
  await page.goto('/app/explorer?range=7d&live=%221%22')
  await expect(page.getByRole('switch', { name: /^Live/ })).toBeChecked()
  await page.goto('/app')
  await expect.poll(() => new URL(page.url()).pathname).toBe('/app/explorer')
})

browserTest('dates are in English, in the order of the browser’s region', async () => {
  for (const [locale, pattern] of [
    ['en-GB', /^\d{2} \p{L}+, \d{2}:/u],
    ['en-US', /^\p{L}+ \d{2}, \d{2}:/u],
    ['de-DE', /^\d{2} \p{L}+, \d{2}:/u],
  ] as const) {
    const page = await openBars({ locale })
    await expect(page.locator('[data-id]').first().getByRole('gridcell').first()).toHaveText(
      pattern,
    )
  }
})

browserTest(
  'the page says when live updates are interrupted, without moving its layout',
  async () => {
    const page = await openBars()
    await waitUntilSettled(page)
    const save = page.getByRole('button', { name: 'Save view' })
    const box = await save.boundingBox()
    await page.route('**/dashboard/events/live*', (route) => route.fulfill({ status: 429 }))
    await page.getByRole('switch', { name: /^Live/ }).check({ force: true })
    const words = page.getByText('Live updates paused: the service isn’t responding.')
    await expect(words).toBeVisible()
    assert.deepEqual(await save.boundingBox(), box)
    await page.unroute('**/dashboard/events/live*')
    await expect(words).toHaveCount(0)
    await expect(page.getByRole('switch', { name: 'Live', exact: true })).toBeChecked()
    assert.deepEqual(await save.boundingBox(), box)
  },
)
