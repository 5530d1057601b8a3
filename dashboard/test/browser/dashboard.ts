import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { expect as playwrightExpect, type Page } from '@playwright/test'
import { startTestApp, type TestApp } from '../../../server/test/harness/app/start-app.ts'
import { startBrowser } from './browser.ts'
import { TIMEOUT_MS, type Visit, type Visitor } from './visit.ts'
import { Windows } from './windows.ts'

/** Retries an assertion for as long as a page may take. */
export const expect = playwrightExpect.configure({ timeout: TIMEOUT_MS })

/** Screenshots of failed tests. */
const RESULTS = join(import.meta.dirname, '../../test-results')

export type Dashboard = {
  annals: TestApp
  /** Opens a window, signed in if the visitor has a member. It is closed after the test. */
  open: (visitor?: Visitor) => Promise<Page>
  /** Opens a window that stays open for the next tests, or returns the one that is open. */
  openShared: (visitor: Visitor) => Promise<Page>
  /** A browser test. It fails if a page logged an error or requested anything from another host. */
  browserTest: (name: string, work: () => Promise<void>) => void
}

/** Starts the service with its pages, a separate database and a browser, for the tests of one file. */
export async function startDashboard({
  env = {},
}: { env?: Record<string, string> } = {}): Promise<Dashboard> {
  const pagesFolder = process.env.TEST_PAGES
  assert(pagesFolder, 'there are no built pages; run tests with: npm test -- <file>')
  const stack = new AsyncDisposableStack()
  after(() => stack.disposeAsync())
  const annals = stack.use(await startTestApp({ env, pagesFolder }))
  const opened = await startBrowser()
  if (opened) stack.use(opened)
  const windows = opened && new Windows(opened.browser, annals.url)
  const visits: OpenVisits = { own: [], shared: [] }
  return {
    annals,
    open: async (visitor = {}) => {
      assert(windows)
      const visit = await windows.open(visitor)
      visits.own.push(visit)
      return visit.page
    },
    openShared: async (visitor) => {
      assert(windows)
      const [visit = await windows.open(visitor)] = visits.shared
      visits.shared = [visit]
      return visit.page
    },
    browserTest: (name, work) =>
      void test(name, { skip: windows === null && 'no Chromium starts here' }, () =>
        watch(name, { windows, visits, work }),
      ),
  }
}

/** The windows that only the current test uses, and the one that tests share. */
type OpenVisits = { own: Visit[]; shared: Visit[] }

async function watch(
  name: string,
  {
    windows,
    visits,
    work,
  }: { windows: Windows | null; visits: OpenVisits; work: () => Promise<void> },
): Promise<void> {
  const listOpen = () => [...visits.own, ...visits.shared]
  let hasFailed = true
  try {
    await work()
    assert.deepEqual(
      listOpen().flatMap(({ problems }) => problems.splice(0)),
      [],
    )
    hasFailed = false
  } catch (error) {
    await takePictures(name, listOpen())
    throw error
  } finally {
    // The next test must not start with what a failed one left.
    const ended = hasFailed ? listOpen() : visits.own
    if (hasFailed) visits.shared = []
    visits.own = []
    for (const visit of ended) await windows?.close(visit, { hasFailed })
  }
}

async function takePictures(name: string, visits: readonly Visit[]): Promise<void> {
  mkdirSync(RESULTS, { recursive: true })
  const file = name.replaceAll(/[^a-z0-9]+/gi, '-').slice(0, 80)
  for (const [index, { page }] of visits.entries()) {
    await page.screenshot({ path: join(RESULTS, `${file}-${index + 1}.png`) }).catch(() => {})
  }
}
