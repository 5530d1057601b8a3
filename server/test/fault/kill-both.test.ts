import { test } from 'node:test'
import { FaultService } from '../harness/app/fault-service.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'

/** The state after a power failure, except for data that the disk loses. */
test('killing the service and PostgreSQL at once loses and duplicates nothing', async () => {
  await using annals = await FaultService.start()
  await using load = annals.load()
  await repeatFault(async () => {
    await load.waitForProgress()
    annals.killPostmaster()
    await annals.kill()
    await annals.restart()
  })
  await load.waitForProgress()
  await annals.assertHolds(load)
})
