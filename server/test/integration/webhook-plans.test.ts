import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DELIVERY_STATUSES, type WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { findEndSeq, findSeqAt } from '../../src/ledger/chain-search.ts'
import {
  claimDue,
  failWaiting,
  fanOut,
  listWork,
  releaseLeases,
  type WebhookWork,
} from '../../src/outlet/webhook/dispatch/delivery-queue-store.ts'
import {
  findDelivery,
  findEventFrom,
  insertMissing,
  listDeliveries,
  redeliver,
  redeliverFailed,
} from '../../src/outlet/webhook/delivery/delivery-store.ts'
import { listDeliveredEvents } from '../../src/outlet/webhook/delivery/delivered-event-store.ts'
import {
  previewRetry,
  RETRYABLE_STATUSES,
  retryStep,
} from '../../src/outlet/webhook/delivery/retry-store.ts'
import { settleAttempts } from '../../src/outlet/webhook/dispatch/settle-store.ts'
import type { Settlement } from '../../src/outlet/webhook/dispatch/settlement.ts'
import { deleteEmptied, deleteEnded } from '../../src/outlet/webhook/delivery/sweep-store.ts'
import { assertId, newId } from '../../src/platform/id.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { query } from '../harness/database/engine.ts'
import { explain, explainKept, type PlanNode, relationsOf } from '../harness/database/explain.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { acceptedSettlement } from '../harness/webhook/deliveries.ts'
import { type DeliveryRow, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const MB = 1_024 * 1_024
const WEBHOOKS = 5
const EVENTS = 20_000
const DELIVERIES_PER_WEBHOOK = 4_000

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
// Without a dispatcher, which would process the seeded rows.
const annals = stack.use(await startTestApp({ role: 'api' }))
const { connection } = annals.database
const { pool } = annals.app.database
const tenant = await annals.createCompany()
const workspaceId = tenant.workspace.id
const webhookIds: WebhookId[] = []
for (let nth = 0; nth < WEBHOOKS; nth += 1) {
  webhookIds.push(await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:1/' }))
}

/** A workspace with 20,000 events, and webhooks that have received the first 4,000. */
await query(
  connection,
  `insert into event (seq, ts, received_at, id, workspace_id, company_id, project_id, hash, prev_hash,
                      category, action, sealed, salts)
   select n, now(), now() - interval '1 day' + n * interval '1 second',
          overlay(event_id_floor(now())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
          '${workspaceId}', '${tenant.company.id}',
          case when n % 3 = 0 then '${tenant.project.id}'::uuid end,
          sha256(n::text::bytea), sha256((n - 1)::text::bytea), 'category', 'action', '{}', '{}'
     from generate_series(1, ${EVENTS}) as n`,
)
await query(
  connection,
  `update chain_head set seq = ${EVENTS}, last_id = gen_random_uuid() where workspace_id = '${workspaceId}'`,
)
/** Most have succeeded, some have failed, and a few are open, as in a healthy service. */
await query(
  connection,
  `insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id, status,
                                 attempt, due_at, created_at, updated_at)
   select w.workspace_id, w.id, gen_random_uuid(), n, n, gen_random_uuid(),
          case when n > ${DELIVERIES_PER_WEBHOOK} - 10 then 'PENDING'
               when n > ${DELIVERIES_PER_WEBHOOK} - 20 then 'RETRY_SCHEDULED'
               when n > ${DELIVERIES_PER_WEBHOOK} - 30 then 'SENDING'
               when n % 50 = 0 then 'FAILED' else 'SUCCEEDED' end,
          1, now() - interval '1 minute', now(), now()
     from webhook w, generate_series(1, ${DELIVERIES_PER_WEBHOOK}) as n`,
)
await query(
  connection,
  `update webhook set seen_seq = ${DELIVERIES_PER_WEBHOOK}, open_count = 30,
                      last_sequence = ${DELIVERIES_PER_WEBHOOK}`,
)
const [month] = await query(
  connection,
  'select tableoid::regclass::text as name from event limit 1',
)
await query(connection, `analyze ${String(month?.['name'])}`)
await query(connection, 'analyze webhook, webhook_delivery')

const [webhookId] = webhookIds
assert(webhookId)
const [someDelivery] = await readDeliveries(annals, webhookId)
const deliveryId = assertId<'delivery'>(someDelivery?.id ?? '')
const target = { workspaceId, webhookId }
const now = new Date()
const lease = { token: newId(), until: new Date(now.getTime() + 60_000) }

const SCANS_BY_INDEX = ['Index Scan', 'Index Only Scan', 'Bitmap Heap Scan', 'Tid Scan']

/** Tables that grow with events are read only by an index condition. */
function assertScales(nodes: readonly PlanNode[], about: string): void {
  const shown = `${about}: ${JSON.stringify(nodes, null, 1)}`
  for (const node of nodes) {
    const kind = node['Node Type']
    const relation = node['Relation Name'] ?? ''
    const isBig = relation.startsWith('event') || relation === 'webhook_delivery'
    if (!isBig || kind === 'ModifyTable') continue
    assert(SCANS_BY_INDEX.includes(kind), shown)
    if (kind.startsWith('Index')) assert(node['Index Cond'] !== undefined, shown)
  }
}

/** The plan for these values and, for a statement that keeps its plan, the generic one. */
async function assertStatementScales(
  about: string,
  run: (db: Queryable) => Promise<unknown>,
  { isKept = false }: { isKept?: boolean } = {},
): Promise<PlanNode[]> {
  const nodes = await explain(pool, run)
  assertScales(nodes, about)
  if (!isKept) return nodes
  const kept = await explainKept(pool, run)
  assertScales(kept, `${about}, kept`)
  return [...nodes, ...kept]
}

const FILTER = { categories: ['billing', 'auth*'], actorIds: ['*'] }

const usedIndexes = (nodes: readonly PlanNode[]) => nodes.map((node) => node['Index Name'])

const listAll = (db: Queryable) =>
  listWork(db, {
    workspaceIds: null,
    now,
    openMax: 100_000,
    cursor: { companyId: null, webhookIds: new Map() },
    limit: 256,
  })

async function findWork(id: WebhookId): Promise<WebhookWork> {
  const works = await listAll(annals.app.database.db)
  const work = works.find((one) => one.webhookId === id)
  assert(work)
  return work
}

test('looking for work reads only a few open deliveries per webhook, and no events', async () => {
  const nodes = await assertStatementScales('listWork', listAll, { isKept: true })
  assert(usedIndexes(nodes).includes('webhook_delivery__due'))
  assert(!relationsOf(nodes).some((name) => name.startsWith('event')))
})

for (const count of [1, 16, 128]) {
  test(`claiming ${count} finds due deliveries by an index`, async () => {
    const nodes = await assertStatementScales(
      'claimDue',
      (db) => claimDue(db, { ...target, room: { count, bytes: MB }, lease, now }),
      { isKept: true },
    )
    assert(usedIndexes(nodes).includes('webhook_delivery__due'))
  })
}

for (const count of [0, 16, 128]) {
  test(`fan-out with room for ${count} reads only that part of the chain`, async () => {
    for (const projectId of [null, tenant.project.id]) {
      await assertStatementScales(
        'fanOut',
        async (db) => {
          const webhook = { ...(await findWork(webhookId)), projectId, filter: FILTER }
          const room = { count, bytes: MB }
          return await fanOut(db, { webhook, toSeq: webhook.seenSeq + 256, room, lease, now })
        },
        { isKept: true },
      )
    }
  })
}

function settlementOf(delivery: DeliveryRow): Settlement {
  return acceptedSettlement(delivery, target, { lease: newId(), now })
}

test('results are written, and leases released, by the keys of the deliveries', async () => {
  const deliveries = await readDeliveries(annals, webhookId)
  for (const count of [1, 500]) {
    const some = deliveries.slice(0, count)
    const nodes = await assertStatementScales(
      `settleAttempts of ${count}`,
      (db) => settleAttempts(db, some.map(settlementOf)),
      { isKept: true },
    )
    assert(usedIndexes(nodes).includes('webhook_delivery_pkey'))
  }
  await assertStatementScales('releaseLeases', (db) =>
    releaseLeases(db, deliveries.slice(0, 16).map(settlementOf), now),
  )
})

test('a page of deliveries is read from an index, with any status, in both directions', async () => {
  for (const status of [null, ...DELIVERY_STATUSES]) {
    for (const where of [{ before: null }, { before: 2_000 }, { after: 0 }, { after: 2_000 }]) {
      for (const limit of [2, 51, 201]) {
        const about = JSON.stringify({ status, where, limit })
        await assertStatementScales(about, (db) =>
          listDeliveries(db, { ...target, status, position: where, end: null, limit }),
        )
      }
    }
  }
})

test('finds one delivery by its key', async () => {
  const nodes = await assertStatementScales('findDelivery', (db) =>
    findDelivery(db, { ...target, deliveryId }),
  )
  assert(usedIndexes(nodes).includes('webhook_delivery_pkey'))
})

test('redelivery of one event, of failed ones and of missed ones reads only what it needs', async () => {
  await assertStatementScales('redeliver', (db) => redeliver(db, { ...target, deliveryId, now }))
  const seqs = { from: 1_000, to: 1_499 }
  await assertStatementScales('redeliverFailed', (db) =>
    redeliverFailed(db, { ...target, seqs, limit: 500, now }),
  )
  for (const projectId of [null, tenant.project.id]) {
    await assertStatementScales('insertMissing', (db) =>
      insertMissing(db, { ...target, selection: { projectId, filter: FILTER }, seqs, now }),
    )
  }
  await assertStatementScales('findEventFrom', (db) =>
    findEventFrom(db, workspaceId, { seq: 1_000, endSeq: 2_000 }),
  )
  await assertStatementScales('findSeqAt', (db) =>
    findSeqAt(db, workspaceId, { atMs: Date.now() - 80_000_000, headSeq: EVENTS }),
  )
  await assertStatementScales('findEndSeq', (db) =>
    findEndSeq(db, workspaceId, { toMs: Date.now() - 80_000_000, headSeq: EVENTS }),
  )
})

test('a retry of many deliveries, its preview and a list with events read only what they need', async () => {
  for (const status of RETRYABLE_STATUSES) {
    for (const afterSequence of [0, 2_000]) {
      const scope = { throughSequence: DELIVERIES_PER_WEBHOOK, previewedAt: now }
      const nodes = await assertStatementScales(`retryStep ${status}`, (db) =>
        retryStep(db, { ...target, status, scope, afterSequence, limit: 1_000, now }),
      )
      const index = status === 'FAILED' ? 'webhook_delivery__failed' : 'webhook_delivery__due'
      assert(usedIndexes(nodes).includes(index), JSON.stringify(nodes, null, 1))
    }
  }
  const nodes = await assertStatementScales('previewRetry', (db) => previewRetry(db, target))
  for (const index of ['webhook_delivery__failed', 'webhook_delivery__due']) {
    assert(usedIndexes(nodes).includes(index), JSON.stringify(nodes, null, 1))
  }
  const seqs = Array.from({ length: 200 }, (_, nth) => 10 * nth + 1)
  await assertStatementScales('listDeliveredEvents', (db) =>
    listDeliveredEvents(db, { workspaceId, seqs }),
  )
})

test('ending pending deliveries and deleting old ones reads only those of a webhook, in parts', async () => {
  const nodes = await assertStatementScales('endWaiting', (db) =>
    failWaiting(db, { ...target, reason: 'It was disabled.', limit: 1_000, now }),
  )
  assert(usedIndexes(nodes).includes('webhook_delivery__due'))
  for (const isDeleted of [false, true]) {
    const swept = { ...target, isDeleted }
    await assertStatementScales('deleteEnded', (db) =>
      deleteEnded(db, swept, { before: now, limit: 1_000 }),
    )
    await assertStatementScales('deleteEmptied', (db) => deleteEmptied(db, swept))
  }
})
