import assert from 'node:assert/strict'
import type { Browser } from '@playwright/test'
import { cookieOf, DESKTOP, openVisit, type Visit, type Visitor } from './visit.ts'

/** What a test can listen to on its page. */
const PAGE_EVENTS = ['request', 'requestfailed', 'response', 'download', 'dialog', 'popup'] as const

/**
 * The windows of a service. Later tests reuse those that earlier tests have closed: a window that has loaded the
 * pages before takes a third of the CPU time to load them again. Nothing else of the earlier test is left.
 */
export class Windows {
  readonly #browser: Browser
  readonly #url: string
  readonly #closed: Visit[] = []
  readonly #reusable = new Set<Visit>()

  constructor(browser: Browser, url: string) {
    this.#browser = browser
    this.#url = url
  }

  async open(visitor: Visitor): Promise<Visit> {
    const isSeparate = visitor.context !== undefined || visitor.mayLoseService === true
    if (isSeparate) return await openVisit(this.#browser, this.#url, visitor)
    const visit = this.#closed.pop() ?? (await openVisit(this.#browser, this.#url, {}))
    this.#reusable.add(visit)
    if (visitor.member) await visit.context.addCookies([cookieOf(visitor.member, this.#url)])
    return visit
  }

  async close(visit: Visit, { hasFailed }: { hasFailed: boolean }): Promise<void> {
    if (hasFailed || !this.#reusable.has(visit) || visit.page.isClosed()) {
      await visit.context.close()
      return
    }
    await clear(visit)
    this.#closed.push(visit)
  }
}

async function clear({ page, context, problems }: Visit): Promise<void> {
  for (const event of PAGE_EVENTS)
    await page.removeAllListeners(event, { behavior: 'ignoreErrors' })
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.evaluate(() => {
    localStorage.clear()
    sessionStorage.clear()
  })
  await page.mouse.move(0, 0)
  await page.goto('about:blank')
  const aheadMs = (await page.evaluate(() => Date.now())) - Date.now()
  assert(
    Math.abs(aheadMs) < 60_000,
    'a test that changes the clock needs its own window: context: {}',
  )
  const others = context.pages().filter((other) => other !== page)
  await Promise.all(others.map((other) => other.close()))
  await context.clearCookies()
  await page.emulateMedia({ colorScheme: null })
  await page.setViewportSize(DESKTOP)
  // What the old page logged while it was closed.
  problems.splice(0)
}
