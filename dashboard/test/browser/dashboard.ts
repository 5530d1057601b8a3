import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { expect as playwrightExpect, type Page } from '@playwright/test'
import { processScope } from '../../../server/test/harness/app/process-scope.ts'
import { startTestApp, type TestApp } from '../../../server/test/harness/app/start-app.ts'
import { ANY_DESTINATION } from '../../../server/test/harness/webhook/webhooks.ts'
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

type Service = { annals: TestApp; windows: Windows | null }

let shared: Promise<Service> | null = null

/**
 * For the tests of one file: the service with its pages, and a browser. Files share the service, so each creates
 * its own companies. A file with other variables gets a separate service with a separate database.
 */
export async function startDashboard({
  env,
}: { env?: Record<string, string> } = {}): Promise<Dashboard> {
  const own = new AsyncDisposableStack()
  after(() => own.disposeAsync())
  // A window that has loaded the pages before takes a third of the CPU time to load them again.
  const service = env ? startService(own, env) : (shared ??= startService(processScope))
  const { annals, windows } = await service
  const visits: OpenVisits = { own: [], shared: [] }
  own.defer(() => closeAll(windows, visits.shared))
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

async function startService(
  scope: AsyncDisposableStack,
  env: Record<string, string> = ANY_DESTINATION,
): Promise<Service> {
  const pagesFolder = process.env.TEST_PAGES
  assert(pagesFolder, 'there are no built pages; run tests with: npm test -- <file>')
  const annals = scope.use(await startTestApp({ env, pagesFolder }))
  const opened = await startBrowser()
  if (opened) scope.use(opened)
  return { annals, windows: opened && new Windows(opened.browser, annals.url) }
}

async function closeAll(windows: Windows | null, visits: readonly Visit[]): Promise<void> {
  for (const visit of visits) await windows?.close(visit, { hasFailed: false })
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
