import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DELIVERY_STATUSES } from '../../src/outlet/webhook/delivery/delivery.ts'
import {
  findScanEnd,
  isScanned,
  listDeliveries,
} from '../../src/outlet/webhook/delivery/delivery-store.ts'
import { countRows } from '../harness/database/count-rows.ts'
import { query } from '../harness/database/engine.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' }, role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { db } = annals.app.database
const tenant = await annals.createCompany()
const workspaceId = tenant.workspace.id
const webhookId = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:1/' })
const DELIVERIES = 22_000
const ENDED = [3, 7_000, 7_001, 21_990]

// The statistics cover only a few of them, because a backlog can grow faster than its statistics.
for (const [from, to] of [
  [1, 100],
  [101, DELIVERIES],
]) {
  await query(
    connection,
    `insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id, status,
                                   attempt, due_at, created_at, updated_at)
     select '${workspaceId}', '${webhookId}', gen_random_uuid(), n, n, gen_random_uuid(),
            case when n = any ('{${ENDED.join()}}') then 'SUCCEEDED' else 'PENDING' end,
            1, now(), now(), now()
       from generate_series(${from}, ${to}) as n`,
  )
  if (from === 1) await query(connection, 'analyze webhook_delivery')
}

test('a page of deliveries reads a bounded number of rows, whatever the status', async () => {
  for (const status of [null, ...DELIVERY_STATUSES]) {
    for (const position of [{ before: null }, { before: 20_000 }, { after: 0 }, { after: 2_000 }]) {
      const [, rows] = await countRows(db, 'webhook_delivery', async (trx) => {
        const range = { workspaceId, webhookId, position }
        const end = isScanned(status) ? await findScanEnd(trx, range) : null
        return await listDeliveries(trx, { ...range, status, end, limit: 51 })
      })
      assert(rows <= 10_000, `${status} ${JSON.stringify(position)}: ${rows} rows`)
    }
  }
})

test('following nextCursor finds every delivery of a status, in order', async () => {
  const walk = async (parameters: Record<string, string>) => {
    const sequences: number[] = []
    let cursor: string | null = null
    do {
      const search = new URLSearchParams({ ...parameters, ...(cursor !== null && { cursor }) })
      const path = `/v1/webhooks/${webhookId}/deliveries?${search.toString()}`
      const { status, json, text } = await annals.call('GET', path, { key: tenant.companyKey })
      assert.equal(status, 200, text)
      sequences.push(...json.data.map(({ sequence }: { sequence: number }) => sequence))
      cursor = json.nextCursor
    } while (cursor !== null)
    return sequences
  }
  for (const limit of ['1', '3', '4', '200']) {
    const ended = { status: 'SUCCEEDED', limit }
    assert.deepEqual(await walk(ended), ENDED.toReversed())
    assert.deepEqual(await walk({ ...ended, afterSequence: '0' }), ENDED)
    assert.deepEqual(await walk({ ...ended, afterSequence: '3' }), ENDED.slice(1))
    assert.deepEqual(await walk({ status: 'SENDING', limit }), [])
  }
})
