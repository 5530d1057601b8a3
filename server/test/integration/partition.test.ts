import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { PAGE_BYTES_MAX, SCANNED_ROWS_MAX } from '../../src/ledger/event-page.ts'
import { readPartialPage } from '../../src/ledger/event-list-store.ts'
import { ensurePartition, listStrayMonths } from '../../src/ledger/hot/partition-store.ts'
import { startPartitionWorker } from '../../src/ledger/hot/partition-worker.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database, type Queryable } from '../../src/platform/pg/database.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { explain, relationsOf } from '../harness/database/explain.ts'
import { assertChainsHold, walkEvents } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ clock })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const logger = createLogger('silent')

/** The partition of the instant's month. */
const partitionOf = (ms: number) =>
  `event_${new Date(ms).toISOString().slice(0, 7).replace('-', '_')}`

async function countIn(table: string): Promise<number> {
  const [row] = await query(connection, `select count(*)::int as n from ${table}`)
  return Number(row?.['n'])
}

async function listPartitions(): Promise<string[]> {
  const rows = await query(
    connection,
    `select inhrelid::regclass::text as name from pg_inherits
      where inhparent = 'event'::regclass order by name`,
  )
  return rows.map(({ name }) => String(name))
}

async function sendMany(key: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, index) => ({
    category: 'c',
    action: `a${index}`,
    idempotencyKey: newId(),
  }))
  const response = await annals.call('POST', '/v1/events/batch', { key, body: { events } })
  assert(
    response.json.results.every(({ status }: { status: number }) => status === 201),
    response.text,
  )
}

/** Runs the worker once. */
async function runWorker(): Promise<void> {
  await using worker = startPartitionWorker({ connection, clock, logger })
  await worker.runNow()
}

test('an event is stored in the partition of the month of its receipt', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const body = { category: 'c', action: 'a', timestamp: '1999-01-01T00:00:00Z' }
  assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
  assert.equal(await countIn(partitionOf(clock())), 1)
  assert.equal(await countIn('event_default'), 0)
})

test('this month and the next three have partitions from the start', async () => {
  await eventually(async () => {
    const names = await listPartitions()
    const now = new Date(clock())
    for (let ahead = 0; ahead <= 3; ahead += 1) {
      const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, 1)
      assert(names.includes(partitionOf(month)), partitionOf(month))
    }
  })
})

test('a service that outlives its partitions keeps working, and the worker creates the missing ones', async () => {
  const { workspaceKey: key, workspaces } = await annals.createCompany()
  await sendMany(key, 5)
  const before = await walkEvents(annals, key)
  // Two months without a partition, both a year ahead at most: all stays hot for ENTERPRISE.
  advance(243 * DAY_MS)
  await sendMany(key, 300)
  const firstMs = clock()
  advance(40 * DAY_MS)
  await sendMany(key, 20)
  assert.equal(await countIn('event_default'), 320)
  const shown = await walkEvents(annals, key)
  assert.equal(shown.length, 325)
  await assertChainsHold(annals)

  await runWorker()
  assert.equal(await countIn('event_default'), 0)
  assert.equal(await countIn(partitionOf(firstMs)), 300)
  assert.equal(await countIn(partitionOf(clock())), 20)
  assert.deepEqual(await walkEvents(annals, key), shown)
  assert.deepEqual(shown.slice(-before.length), before)
  await assertChainsHold(annals)

  await sendMany(key, 10)
  assert.equal(await countIn(partitionOf(clock())), 30, 'new events find the new partition')
  await assertChainsHold(annals)
  assert(workspaces.length > 0)
})

test('each partition rejects a duplicate sequence number', async () => {
  const indexes = await query(
    connection,
    `select indrelid::regclass::text as name from pg_index i
      where i.indisunique and i.indisvalid
        and pg_get_indexdef(indexrelid) like '%btree (workspace_id, seq)'`,
  )
  assert.deepEqual(
    indexes.map(({ name }) => String(name)).toSorted(),
    (await listPartitions()).toSorted(),
  )
})

test('every partition has every index of the table', async () => {
  const rows = await query(
    connection,
    `select p.inhrelid::regclass::text as name,
            (select count(*)::int from pg_index i join pg_inherits x on x.inhrelid = i.indexrelid
              where i.indrelid = p.inhrelid and i.indisvalid) as attached,
            (select count(*)::int from pg_index i where i.indrelid = 'event'::regclass) as wanted
       from pg_inherits p where p.inhparent = 'event'::regclass`,
  )
  for (const { name, attached, wanted } of rows) assert.equal(attached, wanted, String(name))
})

test('twenty concurrent workers create each partition once while events arrive', async () => {
  advance(150 * DAY_MS)
  const { workspaceKey: key } = await annals.createCompany()
  await sendMany(key, 100)
  assert.equal(await countIn('event_default'), 100)
  const workers = Array.from({ length: 20 }, () => runWorker())
  const senders = Array.from({ length: 10 }, async (_, caller) => {
    for (let index = 0; index < 10; index += 1) {
      const idempotencyKey = `${caller}/${index}`
      const body = { category: 'c', action: 'a', idempotencyKey }
      // On a busy machine the response can be 503; then the client retries.
      await eventually(async () => {
        const { status, text } = await annals.call('POST', '/v1/events', { key, body })
        assert(status === 200 || status === 201, text)
      })
    }
  })
  await Promise.all([...workers, ...senders])
  // Each worker gives up if the senders keep it from the lock.
  await eventually(async () => {
    await runWorker()
    assert.equal(await countIn('event_default'), 0)
  })
  assert.equal((await walkEvents(annals, key)).length, 200)
  await assertChainsHold(annals)
})

test('an event on its way to the default partition is stored while its month is created', async () => {
  advance(150 * DAY_MS)
  const { workspaceKey: key } = await annals.createCompany()
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const body = { category: 'c', action: 'a' }
  const sent = await owner.db.transaction().execute(async (trx) => {
    await createPartition(trx, clock())
    const response = annals.call('POST', '/v1/events', { key, body })
    await eventually(async () => {
      const waiting = await query(
        connection,
        // Without the write probe, which can wait too.
        `select 1 from pg_locks join pg_stat_activity using (pid)
          where relation = 'event_default'::regclass and not granted
            and application_name = 'annals writer'`,
      )
      assert.equal(waiting.length, 1)
    })
    return { response }
  })
  const { status, text } = await sent.response
  assert.equal(status, 201, text)
  assert.equal(await countIn(partitionOf(clock())), 1)
  await assertChainsHold(annals)
})

test('of twenty concurrent requests for one month, one creates it', async () => {
  const monthMs = Date.UTC(new Date(clock()).getUTCFullYear() + 3, 5, 1)
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 20, logger })
  const made = await Promise.all(
    Array.from({ length: 20 }, () => ensurePartition(owner.db, monthMs)),
  )
  assert.equal(made.filter((state) => state === 'created').length, 1)
  assert.equal(await ensurePartition(owner.db, monthMs + 20 * DAY_MS), 'exists')
})

/** Far above what a query takes, and far below the 30 s that one waits for a lock. */
const QUERY_MS_MAX = 15_000

async function countWaits(): Promise<number> {
  const waits = await query(
    connection,
    `select 1 from pg_locks where relation = 'event_default'::regclass and not granted`,
  )
  return waits.length
}

test('creating a month during a long query blocks no other query', async () => {
  const { workspaceKey: key } = await seeded()
  const monthMs = Date.UTC(new Date(clock()).getUTCFullYear() + 4, 5, 1)
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 2, logger })
  await owner.db.transaction().execute(async (trx) => {
    // Like `pg_dump`, for as long as it runs.
    await sql`lock table event in access share mode`.execute(trx)
    let isOver = false
    const ensuring = ensurePartition(owner.db, monthMs).finally(() => (isOver = true))
    await eventually(async () => assert(isOver || (await countWaits()) === 1))
    const listed = await within(QUERY_MS_MAX, annals.call('GET', '/v1/events', { key }))
    assert.equal(listed.status, 200, listed.text)
    assert.equal(await ensuring, 'busy')
  })
  assert.equal(await ensurePartition(owner.db, monthMs), 'created')
})

test('a month that could not be created because the table was busy is created soon after', async () => {
  advance(150 * DAY_MS)
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  await using stack = new AsyncDisposableStack()
  const missing = partitionOf(clock())
  await owner.db.transaction().execute(async (trx) => {
    await sql`lock table event in access share mode`.execute(trx)
    const worker = stack.use(startPartitionWorker({ connection, clock, logger, busyRetryMs: 100 }))
    await worker.runNow()
    assert(!(await listPartitions()).includes(missing))
  })
  await eventually(async () => assert((await listPartitions()).includes(missing)))
})

test('finds the months of stray events by their ids, even at the edge of a month', async () => {
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const edges = ['2040-01-31T23:59:59.999Z', '2040-02-01T00:00:00.000Z', '2040-12-31T12:00:00.000Z']
  class PutBack extends Error {}
  const work = owner.db.transaction().execute(async (trx) => {
    await copyEvents(trx, edges)
    const months = await listStrayMonths(trx, { limit: 10 })
    assert.deepEqual(
      months.map((ms) => new Date(ms).toISOString().slice(0, 10)),
      ['2040-01-01', '2040-02-01', '2040-12-01'],
    )
    for (const monthMs of months) await createPartition(trx, monthMs)
    assert.deepEqual(await listStrayMonths(trx, { limit: 10 }), [])
    throw new PutBack()
  })
  await assert.rejects(work, PutBack)
})

test('a month with too many events in the default partition keeps them there, readable', async () => {
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const monthMs = Date.UTC(2041, 4)
  await copyEvents(owner.db, ['2041-05-01T00:00:00.000Z', '2041-05-31T23:59:59.999Z'])
  assert.equal(await ensurePartition(owner.db, monthMs, 1), 'tooLarge')
  assert.deepEqual(await listStrayMonths(owner.db, { limit: 10 }), [monthMs])
  assert.equal(await ensurePartition(owner.db, monthMs, 2), 'created')
  assert.equal(await countIn(partitionOf(monthMs)), 2)
  await sql`drop table ${sql.table(partitionOf(monthMs))}`.execute(owner.db)
})

test('large metadata is stored without compression, in new partitions too', async () => {
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const monthMs = Date.UTC(2042, 1)
  class PutBack extends Error {}
  const work = owner.db.transaction().execute(async (trx) => {
    await createPartition(trx, monthMs)
    const { rows } = await sql<{ name: string; storage: string }>`
      select attrelid::regclass::text as name, attstorage as storage from pg_attribute
       where attname = 'metadata' and attrelid in
             (select relid from pg_partition_tree('event') where isleaf)`.execute(trx)
    assert(rows.some(({ name }) => name === partitionOf(monthMs)))
    assert.deepEqual(
      rows.filter(({ storage }) => storage !== 'e'),
      [],
    )
    throw new PutBack()
  })
  await assert.rejects(work, PutBack)
})

/** For tests that inspect or roll back the partition before it is committed. */
async function createPartition(trx: Queryable, monthMs: number): Promise<void> {
  await sql`select ensure_event_partition(${new Date(monthMs)})`.execute(trx)
}

/** Copies of a stored event with ids of these instants, each in a workspace that doesn't exist. */
async function copyEvents(db: Queryable, instants: readonly string[]): Promise<void> {
  for (const instant of instants) {
    await sql`
      insert into event
      select (jsonb_populate_record(e, jsonb_build_object('workspace_id', gen_random_uuid(),
               'id', event_id_floor(${instant}::timestamptz)))).*
        from event e
       limit 1`.execute(db)
  }
}

test('a query with from reads only the partitions that can contain its events', async () => {
  const { workspaceId } = (await walkEvents(annals, (await seeded()).workspaceKey))[0]
  const read = async (fromMs: number | null, hotDays: number) => {
    const plan = await explain(annals.app.database.pool, (db) =>
      readPartialPage(db, {
        workspaceId,
        filter: { ...NO_FILTER, fromMs },
        hotSinceMs: clock() - hotDays * DAY_MS,
        after: null,
        limit: 50,
        bytesMax: PAGE_BYTES_MAX,
        rowsMax: SCANNED_ROWS_MAX,
      }),
    )
    return relationsOf(plan)
  }
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  for (let back = 1; back <= 12; back += 1) {
    await ensurePartition(owner.db, clock() - back * 15 * DAY_MS)
  }
  const all = await listPartitions()
  const thisMonth = new Date(clock()).setUTCDate(15)
  const since = await read(thisMonth, 3_650)
  assert.deepEqual(
    since.filter((name) => name < partitionOf(thisMonth)),
    [],
  )
  assert(since.includes(partitionOf(clock())))
  const hot = await read(null, 7)
  assert(!hot.includes(partitionOf(clock() - 60 * DAY_MS)), 'a query of hot events skips it')
  assert.deepEqual(await read(null, 36_500), all.toSorted())
})

test('finds an event a day ahead of its receipt, even across the end of a month', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const now = new Date(clock())
  const nextMonthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  advance(nextMonthMs - clock() - 1)
  const timestamp = new Date(clock() + DAY_MS).toISOString()
  const body = { category: 'c', action: 'a', timestamp }
  assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
  await runWorker()
  assert.equal((await walkEvents(annals, key, { from: timestamp })).length, 1)
})

async function seeded() {
  const tenant = await annals.createCompany()
  await sendMany(tenant.workspaceKey, 1)
  return tenant
}
