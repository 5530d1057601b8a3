import { test } from 'node:test'
import { FaultService } from '../harness/app/fault-service.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'

/** `kill -9` of the service. The embedded engine survives, and the next start adopts it. */
test('killing the service under load loses and duplicates nothing', async () => {
  await using annals = await FaultService.start()
  await using load = annals.load()
  await repeatFault(async () => {
    await load.waitForProgress()
    await annals.kill()
    await annals.restart()
  })
  await load.waitForProgress()
  await annals.assertHolds(load)
})
