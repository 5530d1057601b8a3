import { test } from 'node:test'
import { FaultService } from '../harness/fault-service.ts'
import { repeatFault } from '../harness/fault-rounds.ts'

/** What a machine that loses its power leaves behind, short of what the disk forgets. */
test('killing the service and PostgreSQL at once loses and duplicates nothing', async () => {
  await using annals = await FaultService.start()
  await using load = annals.load()
  await repeatFault(async () => {
    await load.flows()
    annals.killPostmaster()
    await annals.kill()
    await annals.restart()
  })
  await load.flows()
  await annals.assertHolds(load)
})
