import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { expect as playwrightExpect, type Page } from '@playwright/test'
import { startTestApp, type TestApp } from '../../../server/test/harness/start-app.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { openVisit, TIMEOUT_MS, type Visit, type Visitor } from './visit.ts'

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
  const visits: Visit[] = []
  const shared = new Map<string, Visit>()
  return {
    annals,
    open: async (visitor = {}) => {
      const member = visitor.member?.cookie ?? ''
      const known = visitor.isShared && shared.get(member)
      const visit = known || (await openVisit(browserOf(opened), annals.url, visitor))
      if (visitor.isShared) shared.set(member, visit)
      visits.push(visit)
      return visit.page
    },
    browserTest: (name, work) =>
      void test(name, { skip: opened === null && 'no Chromium starts here' }, () =>
        watch(name, { visits, shared, work }),
      ),
  }
}

function browserOf(opened: TestBrowser | null): TestBrowser['browser'] {
  assert(opened)
  return opened.browser
}

async function watch(
  name: string,
  {
    visits,
    shared,
    work,
  }: { visits: Visit[]; shared: ReadonlyMap<string, Visit>; work: () => Promise<void> },
): Promise<void> {
  try {
    await work()
    assert.deepEqual(
      visits.flatMap(({ problems }) => problems.splice(0)),
      [],
    )
  } catch (error) {
    await takePictures(name, visits)
    throw error
  } finally {
    const kept = new Set(shared.values())
    const left = visits.splice(0).filter((visit) => !kept.has(visit))
    await Promise.all(left.map(({ context }) => context.close()))
  }
}

async function takePictures(name: string, visits: readonly Visit[]): Promise<void> {
  mkdirSync(RESULTS, { recursive: true })
  const file = name.replaceAll(/[^a-z0-9]+/gi, '-').slice(0, 80)
  for (const [index, { page }] of visits.entries()) {
    await page.screenshot({ path: join(RESULTS, `${file}-${index + 1}.png`) }).catch(() => {})
  }
}
