import type { Browser, Page } from '@playwright/test'
import { startBrowser } from '../../dashboard/test/browser/browser.ts'
import { openVisit } from '../../dashboard/test/browser/visit.ts'
import { percentile } from './http-load.ts'
import type { Service } from './service.ts'

const LOADS = 20
const WHEEL_TURNS = 80
const WHEEL_PIXELS = 1_200
const BRUSHES = 8
const BRUSH_STEPS = 40
/** About two frames, like a moving hand. */
const STEP_MS = 33

export type PageRow = { name: string; p50Ms: number; p95Ms: number; maxMs: number; aimMs: number }

/**
 * Measures the explorer in a real browser: the time until it is usable, and the frame times while
 * scrolling and brushing. Returns no rows if no browser starts.
 */
export async function measureExplorerPages(
  { port }: Service,
  { cookie, workspaceId }: { cookie: string; workspaceId: string },
): Promise<PageRow[]> {
  await using started = await startBrowser()
  if (!started) return []
  const address = `/app/explorer?range=30d&workspaceId=${workspaceId}`
  const open = async (browser: Browser) => {
    const { page, context } = await openVisit(browser, `http://127.0.0.1:${port}`, {
      member: { cookie },
    })
    return { page, [Symbol.asyncDispose]: () => context.close() }
  }
  const first: number[] = []
  const again: number[] = []
  for (let load = 0; load < LOADS; load += 1) {
    await using visit = await open(started.browser)
    first.push(await loadExplorer(visit.page, address))
    again.push(await loadExplorer(visit.page, address))
  }
  await using visit = await open(started.browser)
  await loadExplorer(visit.page, address)
  const scrolling = await countFrames(visit.page, () => scroll(visit.page))
  await using other = await open(started.browser)
  await loadExplorer(other.page, address)
  const brushing = await countFrames(other.page, () => brush(other.page))
  return [
    rowOf('explorer can be used, empty cache', first, 1_000),
    rowOf('explorer can be used, again', again, 1_000),
    rowOf('frames while scrolling', scrolling, 100),
    rowOf('frames while brushing', brushing, 100),
  ]
}

/** The globals that functions running in the page use. */
type PageGlobals = {
  document: { querySelector: (selector: string) => object | null }
  requestAnimationFrame: (draw: (nowMs: number) => void) => void
  frames: number[]
}

/** The time from navigation until the rows and the bars are visible and the search field is usable. */
async function loadExplorer(page: Page, address: string): Promise<number> {
  await page.goto(address, { waitUntil: 'commit' })
  const handle = await page.waitForFunction(
    () => {
      const { document } = globalThis as unknown as PageGlobals
      const parts = ['[role=grid] [data-id]', 'svg path[fill]', 'input[placeholder^=Search]']
      return parts.every((part) => document.querySelector(part)) && performance.now()
    },
    undefined,
    { polling: 'raf' },
  )
  return Number(await handle.jsonValue())
}

/** Returns the time between frames while `work` runs. */
async function countFrames(page: Page, work: () => Promise<void>): Promise<number[]> {
  await page.evaluate(() => {
    const view = globalThis as unknown as PageGlobals
    view.frames = []
    let lastMs = performance.now()
    const next = (nowMs: number) => {
      view.frames.push(nowMs - lastMs)
      lastMs = nowMs
      view.requestAnimationFrame(next)
    }
    view.requestAnimationFrame(next)
  })
  await work()
  return await page.evaluate(() => (globalThis as unknown as PageGlobals).frames)
}

async function scroll(page: Page): Promise<void> {
  await page.locator('[role=grid] [data-id]').first().hover()
  for (let turn = 0; turn < WHEEL_TURNS; turn += 1) {
    await page.mouse.wheel(0, WHEEL_PIXELS)
    await page.waitForTimeout(STEP_MS)
  }
}

/** Brushes and goes back, several times. Includes the wait for the new total. */
async function brush(page: Page): Promise<void> {
  // Located by attribute, because a search by role walks the whole page during the measured frames.
  const total = page.locator('[aria-label="Events over time"] [role=status]')
  for (let nth = 0; nth < BRUSHES; nth += 1) {
    const before = await total.innerText()
    const box = await page.locator('[data-chart]').boundingBox()
    if (!box) throw new Error('there are no bars')
    const middle = box.y + 40
    await page.mouse.move(box.x + box.width * 0.2, middle)
    await page.mouse.down()
    for (let step = 1; step <= BRUSH_STEPS; step += 1) {
      await page.mouse.move(box.x + box.width * (0.2 + (0.5 * step) / BRUSH_STEPS), middle)
      await page.waitForTimeout(STEP_MS / 4)
    }
    await page.mouse.up()
    await total.filter({ hasNotText: before }).waitFor()
    const within = await total.innerText()
    await page.goBack()
    // The total can differ from the first one, because the range ends now.
    await total.filter({ hasNotText: within }).waitFor()
  }
}

function rowOf(name: string, times: readonly number[], aimMs: number): PageRow {
  return {
    name,
    p50Ms: percentile(times, 0.5),
    p95Ms: percentile(times, 0.95),
    maxMs: Math.max(...times),
    aimMs,
  }
}
