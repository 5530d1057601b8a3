import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { expect as playwrightExpect, type Page } from '@playwright/test'
import { startTestApp, type TestApp } from '../../../server/test/harness/start-app.ts'
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
  const visits: Visit[] = []
  return {
    annals,
    open: async (visitor = {}) => {
      assert(windows)
      const visit = await windows.open(visitor)
      visits.push(visit)
      return visit.page
    },
    browserTest: (name, work) =>
      void test(name, { skip: windows === null && 'no Chromium starts here' }, () =>
        watch(name, { windows, visits, work }),
      ),
  }
}

async function watch(
  name: string,
  {
    windows,
    visits,
    work,
  }: { windows: Windows | null; visits: Visit[]; work: () => Promise<void> },
): Promise<void> {
  let hasFailed = true
  try {
    await work()
    assert.deepEqual(
      visits.flatMap(({ problems }) => problems.splice(0)),
      [],
    )
    hasFailed = false
  } catch (error) {
    await takePictures(name, visits)
    throw error
  } finally {
    for (const visit of visits.splice(0)) await windows?.close(visit, { hasFailed })
  }
}

async function takePictures(name: string, visits: readonly Visit[]): Promise<void> {
  mkdirSync(RESULTS, { recursive: true })
  const file = name.replaceAll(/[^a-z0-9]+/gi, '-').slice(0, 80)
  for (const [index, { page }] of visits.entries()) {
    await page.screenshot({ path: join(RESULTS, `${file}-${index + 1}.png`) }).catch(() => {})
  }
}
