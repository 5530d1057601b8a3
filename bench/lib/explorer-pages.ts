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
/** About two frames: a hand that moves. */
const STEP_MS = 33

export type PageRow = { name: string; p50Ms: number; p95Ms: number; maxMs: number; aimMs: number }

/**
 * What a person feels of the explorer, in a real browser: how long until it can be used, and the
 * frames while he scrolls and brushes. Empty where no browser starts.
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

/** What the functions that run in the page use of it. */
type PageGlobals = {
  document: { querySelector: (selector: string) => object | null }
  requestAnimationFrame: (draw: (nowMs: number) => void) => void
  frames: number[]
}

/** Since the navigation began: the rows and the bars are there, and the search can be typed into. */
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

/** The time from each frame to the next, as long as the work goes on. */
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

/** Each time into what is there, and back again; the answer of the search belongs to it. */
async function brush(page: Page): Promise<void> {
  // By its attributes: to look for roles goes through the whole page, in the frames that are measured.
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
    // Not the same number as before: the range ends now, and time goes on.
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
