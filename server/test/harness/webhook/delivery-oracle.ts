import assert from 'node:assert/strict'
import { deliveryIdOf, eventIdOf, upTo } from './deliveries.ts'
import { query } from '../database/engine.ts'
import { eventually } from '../timing/eventually.ts'
import type { ReceivedRequest, Receiver } from './receiver.ts'

type Connection = Parameters<typeof query>[0]

/**
 * Ends the leases of a sender that died. The service would wait a minute for them to expire, and a
 * test need not. Returns the deliveries that were leased: only these may arrive twice.
 */
export async function ageLeases(connection: Connection): Promise<string[]> {
  const rows = await query(
    connection,
    `update webhook_delivery set due_at = now() where status = 'SENDING' returning id`,
  )
  return rows.map(({ id }) => String(id))
}

/**
 * The oracle of the webhook fault tests, for a receiver that accepts everything. Whatever the
 * fault, once the service works again:
 *
 * 1. every event of a webhook's workspace has one delivery, and it succeeded;
 * 2. the receiver got each of them, under the delivery's id;
 * 3. only deliveries in flight during the fault arrived twice, with the same id and the same bytes;
 * 4. the sequence of every webhook starts at 1 and has no gaps.
 */
export async function assertAllDelivered(
  connection: Connection,
  receiver: Receiver,
  { mayRepeat }: { mayRepeat: ReadonlySet<string> },
): Promise<void> {
  const pairs = await eventually(() => readSucceeded(connection))
  const requestsOf = Map.groupBy(receiver.requests, deliveryIdOf)
  assert.equal(receiver.requests.length, receiver.requestCount, 'every request was kept')
  assert.deepEqual([...requestsOf.keys()].toSorted(), pairs.map(({ id }) => id).toSorted())
  for (const { id, eventId } of pairs) {
    const [first, ...others] = requestsOf.get(id) ?? []
    assert(first)
    assert.equal(eventIdOf(first), eventId)
    if (others.length > 0) assert(mayRepeat.has(id), `${id} was not in flight, but arrived twice`)
    assert(others.every(({ body }) => body.equals(first.body)))
    assertAttemptsRise([first, ...others])
  }
  for (const [webhookId, own] of Map.groupBy(pairs, (pair) => pair.webhookId)) {
    const sequences = own.map(({ sequence }) => sequence).toSorted((a, b) => a - b)
    assert.deepEqual(sequences, upTo(own.length), webhookId)
  }
}

function assertAttemptsRise(requests: readonly ReceivedRequest[]): void {
  const attempts = requests.map(({ headers }) => Number(headers['x-service-attempt']))
  assert.deepEqual(
    attempts,
    attempts.toSorted((a, b) => a - b),
  )
}

type Pair = { webhookId: string; id: string; eventId: string; sequence: number }

/** Pairs every event with each webhook of its workspace. Throws while one is not delivered. */
async function readSucceeded(connection: Connection): Promise<Pair[]> {
  const rows = await query(
    connection,
    `select w.id as "webhookId", d.id, e.id as "eventId", d.sequence::int as sequence, d.status
       from event e
       join webhook w on w.workspace_id = e.workspace_id
       left join webhook_delivery d
         on d.workspace_id = e.workspace_id and d.webhook_id = w.id and d.event_id = e.id`,
  )
  const pairs: (Pair & { status: string | null })[] = JSON.parse(JSON.stringify(rows))
  const open = pairs.filter(({ status }) => status !== 'SUCCEEDED')
  assert.equal(open.length, 0, `${open.length} of ${pairs.length} deliveries have not succeeded`)
  assert(pairs.length > 0)
  const [{ count } = {}] = await query(
    connection,
    'select count(*)::int as count from webhook_delivery',
  )
  assert.equal(count, pairs.length, 'there are no other deliveries')
  return pairs
}
