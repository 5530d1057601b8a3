import { test } from 'node:test'
import { FaultService } from '../harness/fault-service.ts'
import { repeatFault } from '../harness/fault-rounds.ts'

/** `kill -9` of the service. The embedded engine outlives it and is adopted by the next start. */
test('a service killed in the middle of load loses and doubles nothing when it is started again', async () => {
  await using annals = await FaultService.start()
  await using load = annals.load()
  await repeatFault(async () => {
    await load.flows()
    await annals.kill()
    await annals.restart()
  })
  await load.flows()
  await annals.assertHolds(load)
})
