import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import {
  claimDue,
  failWaiting,
  fanOut,
  listWork,
  releaseLeases,
} from '../../src/outlet/webhook/dispatch/delivery-queue-store.ts'
import {
  findDelivery,
  insertMissing,
  listDeliveries,
  listEventDeliveries,
  redeliver,
  redeliverFailed,
} from '../../src/outlet/webhook/delivery/delivery-store.ts'
import { settleAttempts } from '../../src/outlet/webhook/dispatch/settle-store.ts'
import type { Settlement } from '../../src/outlet/webhook/dispatch/settlement.ts'
import { deleteEnded } from '../../src/outlet/webhook/delivery/sweep-store.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database, type Queryable } from '../../src/platform/pg/database.ts'
import { acceptedSettlement } from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

const MB = 1_024 * 1_024
const EVENTS = 5_000
/** Each webhook has a delivery for each of these; the other events wait for fan-out. */
const DELIVERIES_PER_WEBHOOK = 4_500
const HANDLED_MAX = 500
/** For each delivery that a statement handles: the delivery, its event, and both again to write. */
const READS_PER_DELIVERY_MAX = 4
const READS_MIN = 20

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
// Without a dispatcher, which would process the seeded rows.
const annals = stack.use(await startTestApp({ role: 'api' }))
const { connection } = annals.database
const logger = createLogger('silent')
const now = new Date()
const lease = { token: newId(), until: new Date(now.getTime() + 60_000) }

type Target = { workspaceId: WorkspaceId; webhookId: WebhookId }

/** A workspace with two webhooks. Returns the first one. */
async function createTarget(): Promise<Target & { companyId: string }> {
  const tenant = await annals.createCompany()
  const webhookId = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:1/' })
  await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:2/' })
  return { workspaceId: tenant.workspace.id, webhookId, companyId: tenant.company.id }
}

async function turnOffAnalyze(): Promise<void> {
  const partitions = await query(
    connection,
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'event'::regclass`,
  )
  for (const name of ['webhook', 'webhook_delivery', ...partitions.map((row) => row['name'])]) {
    await query(connection, `alter table ${String(name)} set (autovacuum_enabled = off)`)
  }
}

/** Deliveries in four states. A quarter is leased by `lease`. */
async function grow({ workspaceId, companyId }: Target & { companyId: string }): Promise<void> {
  await query(
    connection,
    `insert into event (seq, ts, received_at, id, workspace_id, company_id, hash, prev_hash, category,
                        action, sealed, salts)
     select n, now(), now(),
            overlay(event_id_floor(now())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
            '${workspaceId}', '${companyId}', sha256(n::text::bytea), sha256((n - 1)::text::bytea),
            'category', 'action', '{}', '{}'
       from generate_series(1, ${EVENTS}) as n;
     insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id, status,
                                   attempt, due_at, lease, created_at, updated_at)
     select w.workspace_id, w.id, gen_random_uuid(), n, n, gen_random_uuid(),
            (array['PENDING', 'SENDING', 'RETRY_SCHEDULED', 'FAILED'])[n % 4 + 1], 1,
            now() - interval '1 minute', case when n % 4 = 1 then '${lease.token}'::uuid end,
            now(), now()
       from webhook w, generate_series(1, ${DELIVERIES_PER_WEBHOOK}) as n
      where w.workspace_id = '${workspaceId}';
     update webhook
        set open_count = 3 * ${DELIVERIES_PER_WEBHOOK} / 4, last_sequence = ${DELIVERIES_PER_WEBHOOK},
            seen_seq = ${DELIVERIES_PER_WEBHOOK}
      where workspace_id = '${workspaceId}'`,
  )
}

async function listLeased(target: Target): Promise<Settlement[]> {
  const rows = await query(
    connection,
    `select id, sequence::int from webhook_delivery
      where webhook_id = '${target.webhookId}' and lease = '${lease.token}'
      order by sequence limit ${HANDLED_MAX}`,
  )
  return rows.map(({ id, sequence }) => settlementOf(target, String(id), Number(sequence)))
}

function settlementOf(target: Target, id: string, sequence: number): Settlement {
  return acceptedSettlement({ id, sequence }, target, { lease: lease.token, now })
}

type Statement = {
  name: string
  /** The number of deliveries that it may read. */
  handled: number
  run: (db: Queryable) => Promise<unknown>
}

/** The statements of the dispatcher. */
function dispatchStatements(target: Target, leased: readonly Settlement[]): Statement[] {
  const claim = (count: number, isProbe = false): Statement => ({
    name: `claimDue of ${count}${isProbe ? ' as a probe' : ''}`,
    handled: count,
    run: (db) => claimDue(db, { ...target, room: { count, bytes: MB }, lease, now, isProbe }),
  })
  const settle = (count: number): Statement => ({
    name: `settleAttempts of ${count}`,
    handled: count,
    run: (db) => settleAttempts(db, leased.slice(0, count)),
  })
  const cursor = { companyId: null, webhookIds: new Map() }
  const webhook = {
    ...target,
    projectId: null,
    projectSinceSeq: 0,
    pastProjectId: null,
    filter: null,
    pastFilter: null,
    seenSeq: DELIVERIES_PER_WEBHOOK,
  }
  const toSeq = DELIVERIES_PER_WEBHOOK + 128
  return [
    {
      name: 'listWork',
      handled: 4,
      run: (db) => listWork(db, { workspaceIds: null, now, openMax: 100_000, cursor, limit: 256 }),
    },
    claim(1),
    claim(128),
    claim(1, true),
    {
      name: 'fanOut of 128',
      handled: 128,
      run: (db) => fanOut(db, { webhook, toSeq, room: { count: 64, bytes: MB }, lease, now }),
    },
    settle(1),
    settle(HANDLED_MAX),
    {
      name: 'releaseLeases',
      handled: HANDLED_MAX,
      run: (db) => releaseLeases(db, leased, now),
    },
    {
      name: 'endWaiting',
      handled: HANDLED_MAX,
      run: async (db) => {
        await sql`
          update webhook set status = 'DISABLED'
           where workspace_id = ${target.workspaceId} and id = ${target.webhookId}`.execute(db)
        return await failWaiting(db, { ...target, reason: 'Off.', limit: HANDLED_MAX, now })
      },
    },
  ]
}

/** The statements of callers and of the sweeper. */
function otherStatements(target: Target, deliveryId: Settlement['deliveryId']): Statement[] {
  const seqs = { from: 1_000, to: 1_499 }
  const one = { ...target, deliveryId }
  const page = { ...target, status: null, position: { before: null }, end: null, limit: 50 }
  const ended = { before: new Date(0), limit: HANDLED_MAX }
  return [
    { name: 'listDeliveries', handled: 50, run: (db) => listDeliveries(db, page) },
    { name: 'findDelivery', handled: 1, run: (db) => findDelivery(db, one) },
    {
      name: 'listEventDeliveries',
      handled: 2,
      run: (db) => listEventDeliveries(db, { ...target, eventSeq: 1_000, limit: 50 }),
    },
    { name: 'redeliver', handled: 1, run: (db) => redeliver(db, { ...one, now }) },
    {
      name: 'redeliverFailed',
      handled: HANDLED_MAX,
      run: (db) => redeliverFailed(db, { ...target, seqs, limit: HANDLED_MAX, now }),
    },
    {
      name: 'insertMissing',
      handled: HANDLED_MAX,
      run: (db) =>
        insertMissing(db, { ...target, selection: { projectId: null, filter: null }, seqs, now }),
    },
    {
      name: 'deleteEnded',
      handled: HANDLED_MAX,
      run: (db) => deleteEnded(db, { ...target, isDeleted: false }, ended),
    },
  ]
}

/** One connection, so that kept plans stay with it. */
async function connect(planCacheMode: 'force_generic_plan' | 'force_custom_plan') {
  const options = { connection, role: 'annals_serving', connectionsMax: 1, logger } as const
  const database = stack.use(new Database(options))
  await sql`select set_config('plan_cache_mode', ${planCacheMode}, false)`.execute(database.db)
  return database.db
}

/** Rows of growing tables that `run` reads. What it changes is rolled back. */
async function countReads(db: Queryable, run: Statement['run']): Promise<number> {
  const tx = await db.startTransaction().execute()
  try {
    const before = await readCounter(tx)
    await run(tx)
    return (await readCounter(tx)) - before
  } finally {
    await tx.rollback().execute()
  }
}

async function readCounter(db: Queryable): Promise<number> {
  const { rows } = await sql<{ reads: number }>`
    select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint as reads
      from pg_stat_xact_user_tables
     where relname = 'webhook_delivery' or relname like 'event\\_%'`.execute(db)
  return rows[0]?.reads ?? 0
}

/** Sends each statement once, so that the connection keeps its plan. */
async function keepPlans(db: Queryable, target: Target): Promise<void> {
  for (const { run } of dispatchStatements(target, [settlementOf(target, newId(), 1)])) {
    await countReads(db, run)
  }
}

async function assertReadsFew(db: Queryable, statements: readonly Statement[]): Promise<void> {
  const problems: string[] = []
  for (const { name, handled, run } of statements) {
    const reads = await countReads(db, run)
    const readsMax = READS_MIN + READS_PER_DELIVERY_MAX * handled
    if (reads > readsMax) problems.push(`${name} read ${reads} rows, at most ${readsMax} expected`)
  }
  assert.deepEqual(problems, [])
}

await turnOffAnalyze()
const first = await createTarget()
const second = await createTarget()
const keptWhenEmpty = await connect('force_generic_plan')
await keepPlans(keptWhenEmpty, first)
await grow(first)

test('the dispatcher reads few rows even with plans made for empty tables', async () => {
  const leased = await listLeased(first)
  assert.equal(leased.length, HANDLED_MAX)
  await assertReadsFew(keptWhenEmpty, dispatchStatements(first, leased))
})

for (const mode of ['force_generic_plan', 'force_custom_plan'] as const) {
  test(`statements on deliveries read few rows of tables without statistics (${mode})`, async () => {
    await assertReadsFewOf(first, await connect(mode))
  })
}

test('statements on deliveries read few rows of a workspace that is not in the statistics', async () => {
  await query(connection, 'analyze webhook, webhook_delivery, event')
  const kept = await connect('force_generic_plan')
  await keepPlans(kept, second)
  await grow(second)
  await assertReadsFewOf(second, kept)
  await assertReadsFewOf(second, await connect('force_custom_plan'))
})

async function assertReadsFewOf(target: Target, db: Queryable): Promise<void> {
  const leased = await listLeased(target)
  const [one] = leased
  assert(one)
  await assertReadsFew(db, [
    ...dispatchStatements(target, leased),
    ...otherStatements(target, one.deliveryId),
  ])
}
