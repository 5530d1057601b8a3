import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { ageLeases, assertAllDelivered } from '../harness/webhook/delivery-oracle.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { FaultService } from '../harness/app/fault-service.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'

const RESPONSE_MS = 25

test('webhooks survive a kill of PostgreSQL without losing or repeating deliveries', async () => {
  await using annals = await FaultService.start()
  await using receiver = await startReceiver({ afterMs: RESPONSE_MS }, { requestsKeptMax: 100_000 })
  await annals.createWebhooks(receiver.url)
  {
    await using load = annals.load()
    await repeatFault(async () => {
      await load.waitForProgress()
      await receiver.waitFor(receiver.requestCount + 50)
      const before = load.failed
      annals.killPostmaster()
      await load.waitForFailures(before)
    })
    await load.waitForProgress()
    await annals.assertHolds(load)
  }
  await using engine = await startEngine({ dataDir: annals.folder.dataDir, exclusive: false })
  const sentBefore = await quiet(engine.connection, receiver)
  // Leased by a statement whose result was lost in the kill: no worker sends them before
  // their leases end.
  const orphans = await ageLeases(engine.connection)
  assert(!orphans.some((id) => sentBefore.has(id)))
  await assertAllDelivered(engine.connection, receiver, { mayRepeat: new Set() })
})

/** Waits until nothing has been sent for a while: the ledger has no more, and no response is due. */
async function quiet(
  connection: Parameters<typeof query>[0],
  receiver: { requests: { headers: Record<string, string> }[] },
): Promise<Set<string>> {
  const leased = `select id from webhook_delivery where status = 'SENDING' order by id`
  const waiting = `
    select (select count(*) from webhook_delivery where status in ('PENDING', 'RETRY_SCHEDULED'))
         + (select count(*) from webhook w join chain_head h using (workspace_id)
             where h.seq > w.seen_seq) as count`
  return await eventually(async () => {
    const [row] = await query(connection, waiting)
    assert.equal(Number(row?.['count']), 0)
    const sent = new Set(receiver.requests.map(({ headers }) => headers['x-service-delivery-id']))
    const open = await query(connection, leased)
    const onTheirWay = open.filter(({ id }) => sent.has(String(id)))
    assert.deepEqual(onTheirWay, [])
    return new Set([...sent].map(String))
  })
}
