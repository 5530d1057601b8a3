import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { ageLeases, assertAllDelivered } from '../harness/webhook/delivery-oracle.ts'
import { FaultService } from '../harness/app/fault-service.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'

/** Long enough that some deliveries are in flight at any time during the load. */
const RESPONSE_MS = 25

test('a service killed while sending loses no delivery, and repeats only those in flight', async () => {
  await using annals = await FaultService.start()
  await using receiver = await startReceiver({ afterMs: RESPONSE_MS }, { requestsKeptMax: 100_000 })
  await annals.createWebhooks(receiver.url)
  const mayRepeat = new Set<string>()
  {
    await using load = annals.load()
    await repeatFault(async () => {
      await load.waitForProgress()
      await receiver.waitFor(receiver.requestCount + 50)
      await annals.kill()
      // The engine survives the service, and nothing sends now, so all leased deliveries were in
      // flight.
      await using engine = await startEngine({ dataDir: annals.folder.dataDir, exclusive: false })
      for (const id of await ageLeases(engine.connection)) mayRepeat.add(id)
      await annals.restart()
    })
    await load.waitForProgress()
    await annals.assertHolds(load)
  }
  await using engine = await startEngine({ dataDir: annals.folder.dataDir, exclusive: false })
  assert(mayRepeat.size > 0, 'something was in flight')
  await assertAllDelivered(engine.connection, receiver, { mayRepeat })
})
