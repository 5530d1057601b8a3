import assert from 'node:assert/strict'
import { signInAs } from '../../../server/test/harness/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'

const { annals, open, promise } = await startDashboard()

const FIRST_LOAD_BYTES_MAX = 300_000

promise(
  'a first look at the explorer transfers at most 300 kB, and a second one a tenth of it',
  async () => {
    const company = await annals.found()
    await storeEvents(annals, company.workspaceKey, demoEvents({ count: 500, endMs: Date.now() }))
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    const network = await page.context().newCDPSession(page)
    await network.send('Network.enable')
    let bytes = 0
    network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength))
    const load = async () => {
      bytes = 0
      await page.goto('/app/explorer?range=30d', { waitUntil: 'networkidle' })
      await expect(page.getByRole('gridcell', { name: 'user.login' }).first()).toBeVisible()
      await expect(page.getByRole('region', { name: 'Events over time' })).toContainText(
        '500 events',
      )
      return bytes
    }
    const first = await load()
    const second = await load()
    process.stdout.write(`first load: ${first} bytes, second: ${second} bytes\n`)
    assert(first > 50_000, 'the requests were counted')
    assert(first <= FIRST_LOAD_BYTES_MAX, `${first} bytes`)
    assert(second <= FIRST_LOAD_BYTES_MAX / 10, `${second} bytes`)
  },
)
