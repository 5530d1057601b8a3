import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'

const { annals, open, promise } = await startDashboard()

const SECOND_PAGES_BYTES_MAX = 10_000

promise('a second look at the explorer loads only the events anew', async () => {
  const company = await annals.found()
  await storeEvents(annals, company.workspaceKey, demoEvents({ count: 500, endMs: Date.now() }))
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  const load = await measureLoads(page)
  const first = await load()
  const second = await load()
  const said = `${first.pages} bytes of pages and ${first.data} bytes of data`
  // The aim for both together is 300 kB, which is not reached: told, and not promised.
  process.stdout.write(`a first look at the explorer: ${said}\n`)
  assert(first.pages > 50_000 && first.data > 1_000, `not all was counted: ${said}`)
  assert(second.pages <= SECOND_PAGES_BYTES_MAX, `${second.pages} bytes the second time`)
})

type Load = { pages: number; data: number }

/** Loads the explorer, until it shows what there is, and counts every byte that came, heads included. */
async function measureLoads(page: Page): Promise<() => Promise<Load>> {
  const network = await page.context().newCDPSession(page)
  await network.send('Network.enable')
  const paths = new Map<string, string>()
  let load: Load = { pages: 0, data: 0 }
  network.on('Network.requestWillBeSent', ({ requestId, request }) => {
    paths.set(requestId, new URL(request.url).pathname)
  })
  network.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const isData = paths.get(requestId)?.startsWith('/dashboard/') === true
    load[isData ? 'data' : 'pages'] += encodedDataLength
  })
  return async () => {
    load = { pages: 0, data: 0 }
    await page.goto('/app/explorer?range=30d', { waitUntil: 'networkidle' })
    await expect(page.getByRole('gridcell', { name: 'user.login' }).first()).toBeVisible()
    await expect(page.getByRole('region', { name: 'Events over time' })).toContainText('500 events')
    return load
  }
}
