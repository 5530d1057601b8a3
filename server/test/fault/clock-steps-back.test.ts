import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { assertLedgerHolds } from '../harness/event/ledger-oracle.ts'
import { Load } from '../harness/event/load.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000

test('ids stay in order and writes succeed when the clock steps back, or runs ahead and is corrected', async () => {
  let aheadMs = 0
  await using annals = await startTestApp({ clock: () => Date.now() + aheadMs })
  const { workspaces: targets } = await annals.createCompany({ workspaces: ['A', 'B', 'C', 'D'] })
  await using load = new Load({ url: () => annals.url, targets })
  await repeatFault(async () => {
    await load.waitForProgress()
    for (const stepMs of [-HOUR_MS, -24 * HOUR_MS, 49 * HOUR_MS, -24 * HOUR_MS]) {
      aheadMs += stepMs
      await load.waitForProgress()
    }
  })
  await load.stop()
  assert.equal(load.failed, 0, load.describe())
  await assertLedgerHolds(annals.database.connection, [load])
})
