import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'
import { TIMEOUT_MS } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

const FIRST_BYTES_MAX = 300_000
const SECOND_PAGES_BYTES_MAX = 10_000
/** Most browsers also accept Brotli, which is smaller. The limit is for those that don't. */
const GZIP_ONLY = { extraHTTPHeaders: { 'accept-encoding': 'gzip' } }

browserTest(
  'the first load of the explorer is at most 300 kB with gzip, and the second one loads only the data',
  async () => {
    const company = await annals.createCompany()
    await storeEvents(annals, company.workspaceKey, demoEvents({ count: 500, endMs: Date.now() }))
    const member = await signInAs(annals, company, 'OWNER')
    const load = await measureLoads(await open({ member, context: GZIP_ONLY }))
    const first = await load()
    const second = await load()
    const said = `${first.pages} bytes of pages and ${first.data} bytes of data`
    process.stdout.write(`first load of the explorer: ${said}\n`)
    assert.deepEqual([...first.codings].toSorted(), ['gzip', 'none'])
    assert(first.pages > 50_000 && first.data > 1_000, `not everything was counted: ${said}`)
    assert(first.pages + first.data <= FIRST_BYTES_MAX, said)
    assert(second.pages <= SECOND_PAGES_BYTES_MAX, `${second.pages} bytes the second time`)
  },
)

browserTest('the selects of the first load have their styles', async () => {
  const company = await annals.createCompany()
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer', { waitUntil: 'networkidle' })
  const select = page.getByRole('combobox', { name: 'Workspace' })
  const box = await select.locator('xpath=..').locator('svg').boundingBox()
  assert.deepEqual([box?.width, box?.height], [14, 14])
})

browserTest('the next events are loaded when the member scrolls, and not before', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, demoEvents({ count: 300, endMs: Date.now() }))
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  const pages: string[] = []
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname === '/dashboard/events') pages.push(searchParams.has('cursor') ? 'next' : 'first')
  })
  await page.goto('/app/explorer?range=30d', { waitUntil: 'networkidle' })
  await expect(page.getByRole('gridcell').first()).toBeVisible()
  assert.deepEqual(pages, ['first'])
  await page.mouse.wheel(0, 100)
  await expect.poll(() => pages).toEqual(['first', 'next'])
  // Continues to the oldest event. The first row contains the column names.
  await expect(async () => {
    await page.keyboard.press('End')
    const last = page.getByRole('row').last()
    await expect(last).toHaveAttribute('aria-rowindex', '301', { timeout: 500 })
  }).toPass({ timeout: TIMEOUT_MS })
})

type Load = { pages: number; data: number; codings: Set<string> }

/** Loads the explorer until it shows the events, and counts all bytes received, including headers. */
async function measureLoads(page: Page): Promise<() => Promise<Load>> {
  const network = await page.context().newCDPSession(page)
  await network.send('Network.enable')
  const paths = new Map<string, string>()
  let load: Load = { pages: 0, data: 0, codings: new Set() }
  network.on('Network.requestWillBeSent', ({ requestId, request }) => {
    paths.set(requestId, new URL(request.url).pathname)
  })
  network.on('Network.responseReceived', ({ response: { headers } }) => {
    load.codings.add(headers['content-encoding'] ?? 'none')
  })
  network.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const isData = paths.get(requestId)?.startsWith('/dashboard/') === true
    load[isData ? 'data' : 'pages'] += encodedDataLength
  })
  return async () => {
    load = { pages: 0, data: 0, codings: new Set() }
    await page.goto('/app/explorer?range=30d', { waitUntil: 'networkidle' })
    await expect(page.getByRole('gridcell', { name: 'user.login' }).first()).toBeVisible()
    await expect(page.getByRole('region', { name: 'Events over time' })).toContainText('500 events')
    return load
  }
}
