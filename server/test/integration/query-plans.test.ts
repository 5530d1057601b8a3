import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { Client } from 'pg'
import { WRITER_SETTINGS } from '../../src/intake/writer.ts'
import { appendEvents, lockHeads, readHeads } from '../../src/ledger/append-store.ts'
import { type EventFilter, NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { readPartialPage } from '../../src/ledger/event-list-store.ts'
import {
  PAGE_BYTES_MAX,
  type PageOrder,
  type PagePosition,
  SCANNED_ROWS_MAX,
} from '../../src/ledger/event-page.ts'
import { type ListConditions, NO_CONDITIONS } from '../../src/ledger/filter/list-conditions.ts'
import { listChainLinks, listChainRun, readHead } from '../../src/ledger/event-store.ts'
import { isExcludedField } from '../../src/ledger/filter/exclusion.ts'
import { findChainPosition, hasEvent } from '../../src/ledger/replica/chain-position-store.ts'
import { findStoredEvent } from '../../src/ledger/find-event-store.ts'
import { listSegmentsOfId } from '../../src/ledger/segment/segment-store.ts'
import { listStrayMonths } from '../../src/ledger/hot/partition-store.ts'
import { assertId, newId, type WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database, type Queryable } from '../../src/platform/pg/database.ts'
import { query } from '../harness/database/engine.ts'
import {
  explain,
  explainKept,
  explainText,
  measureReads,
  type PlanNode,
  relationsOf,
} from '../harness/database/explain.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { pool } = annals.app.database
const tenant = await annals.createCompany()
const workspaceId = tenant.workspace.id
const PROJECT = newId<'project'>()
const DAY_MS = 86_400_000
/** How often PostgreSQL plans a prepared statement for its values before it tries a generic plan. */
const CUSTOM_PLANS = 5
const nowMs = Date.now()

/** 20,000 events: three quarters in our workspace, the rest in four others. */
await query(
  connection,
  `insert into event (seq, ts, received_at, id, workspace_id, company_id, project_id, hash, prev_hash,
                      category, action, actor_id, actor_email, resource_type, resource_id, sealed, salts)
   select n, now() - n * interval '7 seconds', now(),
          overlay(event_id_floor(now())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
          case when n % 4 < 3 then '${workspaceId}'
               else ('00000000-0000-7000-8000-00000000000' || n % 5)::uuid end,
          '${tenant.company.id}', case when n % 3 = 0 then '${PROJECT}'::uuid end,
          sha256(n::text::bytea), sha256((n - 1)::text::bytea),
          'category ' || n % 20, 'action ' || n % 50, 'actor ' || n % 500,
          case when n % 2 = 0 then 'user' || n % 200 || '@example.com' end,
          'type ' || n % 10, 'resource ' || n % 5000, '{}', '{}'
     from generate_series(1, 20000) as n`,
)
await query(
  connection,
  `update chain_head set seq = 20000, last_id = '${PROJECT}' where workspace_id = '${workspaceId}'`,
)
// Like autovacuum: tables with rows have statistics, empty ones have none.
const [month] = await query(
  connection,
  'select tableoid::regclass::text as name from event limit 1',
)
const partition = String(month?.['name'])
await query(connection, `analyze ${partition}`)

const SCANS_BY_INDEX = ['Index Scan', 'Index Only Scan', 'Bitmap Heap Scan']

/** Plan nodes whose cost grows with the number of events. */
function assertScales(nodes: readonly PlanNode[], about: string): void {
  const shown = `${about}: ${JSON.stringify(nodes)}`
  for (const node of nodes) {
    const kind = node['Node Type']
    const relation = node['Relation Name'] ?? ''
    const isBig = relation.startsWith('event') || relation === 'idempotency_key'
    if (isBig) assert(SCANS_BY_INDEX.includes(kind), shown)
    if (isBig && kind === 'Index Scan') assert(node['Index Cond'] !== undefined, shown)
  }
}

/** Read in index order, without sorting. */
function assertOrdered(nodes: readonly PlanNode[], about: string): void {
  const kinds = new Set(nodes.map((node) => node['Node Type']))
  const allowed = [
    'Limit',
    'Merge Append',
    'Append',
    'Index Scan',
    'Index Scan Backward',
    'Result',
    // These limit the size of a page that is read in order.
    'Subquery Scan',
    'WindowAgg',
  ]
  const others = [...kinds].filter((kind) => !allowed.includes(kind))
  assert.deepEqual(others, [], `${about}: ${JSON.stringify(nodes)}`)
}

type Listed = { conditions?: Partial<ListConditions>; order?: PageOrder }

const readPage = (
  filter: Partial<EventFilter>,
  after: PagePosition | null,
  limit: number,
  { conditions, order = 'desc' }: Listed = {},
) => {
  const hotSinceMs = nowMs - 365 * DAY_MS
  return (db: Queryable) =>
    readPartialPage(db, {
      workspaceId,
      filter: { ...NO_FILTER, ...filter },
      conditions: { ...NO_CONDITIONS, ...conditions },
      order,
      hotSinceMs,
      after,
      limit,
      bytesMax: PAGE_BYTES_MAX,
      rowsMax: SCANNED_ROWS_MAX,
    })
}

const explainPage = (
  filter: Partial<EventFilter>,
  after: PagePosition | null = null,
  listed: Listed = {},
) => explain(pool, readPage(filter, after, 50, listed))

const SINGLES: [filter: Partial<EventFilter>, column: string][] = [
  [{}, ''],
  [{ category: 'category 7' }, 'category_'],
  [{ action: 'action 7' }, 'action_'],
  [{ projectId: PROJECT }, 'project_id_'],
  [{ actorId: 'actor 7' }, 'actor_id_'],
  [{ actorEmail: 'user8@example.com' }, 'actor_email_'],
  [{ resourceType: 'type 7' }, 'resource_type_'],
  [{ resourceId: 'resource 7' }, 'resource_id_'],
]

/** Each filter matches many, few or nothing. */
const NOTHING: [filter: Partial<EventFilter>, column: string][] = [
  [{ category: 'none' }, 'category_'],
  [{ action: 'none' }, 'action_'],
  [{ projectId: newId() }, 'project_id_'],
  [{ actorId: 'none' }, 'actor_id_'],
  [{ actorEmail: 'none' }, 'actor_email_'],
  [{ resourceType: 'none' }, 'resource_type_'],
  [{ resourceId: 'none' }, 'resource_id_'],
]

const RANGES: Partial<EventFilter>[] = [
  {},
  { fromMs: nowMs - DAY_MS / 2 },
  { toMs: nowMs - DAY_MS / 2 },
  { fromMs: nowMs - DAY_MS / 2, toMs: nowMs - DAY_MS / 4 },
]

for (const [filter, column] of [...SINGLES, ...NOTHING]) {
  const matches = NOTHING.some(([nothing]) => nothing === filter) ? 'nothing' : 'some'
  const name = `${Object.keys(filter).join() || 'no filter'} that matches ${matches}`
  test(`a page with ${name} is read in order from an index, in any range and position`, async () => {
    for (const range of RANGES) {
      for (const position of [null, { timestampMs: nowMs - DAY_MS / 3, id: newId(nowMs) }]) {
        const about = JSON.stringify({ ...filter, ...range, position })
        const hasTwoEnds = 'fromMs' in range && ('toMs' in range || position !== null)
        const keptLimits = hasTwoEnds ? [] : [2, 200]
        for (const nodes of [
          await explainPage({ ...filter, ...range }, position),
          ...(await Promise.all(
            keptLimits.map((limit) =>
              explainKept(pool, readPage({ ...filter, ...range }, position, limit)),
            ),
          )),
        ]) {
          assertScales(nodes, about)
          assertOrdered(nodes, about)
          const used = nodes.find((node) => node['Relation Name'] === partition)
          // Named after the partition and its columns by PostgreSQL itself.
          assert.equal(used?.['Index Name'], `${partition}_workspace_id_${column}ts_id_idx`, about)
        }
      }
    }
  })
}

/** Positions inside every range. */
const PLACES: Record<PageOrder, (PagePosition | null)[]> = {
  desc: [null, { timestampMs: nowMs - DAY_MS / 3, id: newId(nowMs) }],
  asc: [null, { timestampMs: nowMs - 0.9 * DAY_MS, id: newId(nowMs) }],
}

for (const [filter, column] of SINGLES) {
  const name = Object.keys(filter).join() || 'no filter'
  test(`a page with ${name}, oldest first, is read in order from an index`, async () => {
    for (const range of RANGES) {
      for (const place of PLACES.asc) {
        const about = JSON.stringify({ ...filter, ...range, place })
        const hasTwoEnds = 'toMs' in range && ('fromMs' in range || place !== null)
        const read = readPage({ ...filter, ...range }, place, 50, { order: 'asc' })
        for (const nodes of [
          await explain(pool, read),
          ...(hasTwoEnds ? [] : [await explainKept(pool, read)]),
        ]) {
          assertScales(nodes, about)
          assertOrdered(nodes, about)
          const used = nodes.find((node) => node['Relation Name'] === partition)
          assert.equal(used?.['Index Name'], `${partition}_workspace_id_${column}ts_id_idx`, about)
        }
      }
    }
  })
}

test('a page with several values of a field reads the first events of each from its index', async () => {
  const values = [7, 8, 9].map((n) => [`category ${n}`, `action ${n}`])
  const categories = [...values.map(([category = '']) => category), 'none']
  const actions = [...values.map(([, action = '']) => action), 'none']
  for (const [column, conditions] of [
    ['category', { categories }],
    ['action', { actions }],
  ] as const) {
    for (const range of RANGES) {
      for (const order of ['asc', 'desc'] as const) {
        for (const place of PLACES[order]) {
          const about = JSON.stringify({ column, range, place, order })
          const nodes = await explainPage(range, place, { conditions, order })
          assertScales(nodes, about)
          const used = nodes.find((node) => node['Relation Name'] === partition)
          assert.equal(used?.['Index Name'], `${partition}_workspace_id_${column}_ts_id_idx`, about)
          const sorted = nodes.filter((node) => node['Node Type'].includes('Sort'))
          assert(sorted.length <= 1, `only the merged pages are sorted: ${about}`)
        }
      }
    }
  }
})

for (const [filter, column] of SINGLES.slice(1)) {
  const [[field, value] = []] = Object.entries(filter)
  test(`a page with several values of ${field} reads the first events of each from its index`, async () => {
    assert(isExcludedField(field) && typeof value === 'string')
    const anyOf = [value, field === 'projectId' ? newId() : 'none'].map((one) => ({
      field,
      value: one,
    }))
    for (const range of RANGES) {
      for (const place of PLACES.desc) {
        const about = JSON.stringify({ anyOf, range, place })
        const nodes = await explainPage({ anyOf, ...range }, place)
        assertScales(nodes, about)
        const used = nodes.find((node) => node['Relation Name'] === partition)
        assert.equal(used?.['Index Name'], `${partition}_workspace_id_${column}ts_id_idx`, about)
        const sorted = nodes.filter((node) => node['Node Type'].includes('Sort'))
        assert(sorted.length <= 1, `only the merged pages are sorted: ${about}`)
      }
    }
    for (const [other] of SINGLES) {
      assertScales(await explainPage({ ...other, anyOf }), JSON.stringify({ other, anyOf }))
    }
  })
}

test('a page with conditions that have no index never reads the whole table', async () => {
  const scanned: [Partial<EventFilter>, Partial<ListConditions>?][] = [
    [{ receivedFromMs: nowMs - DAY_MS }],
    [{ receivedFromMs: nowMs + DAY_MS }],
    [{ receivedToMs: nowMs }],
    [{}, { seqFrom: 1 }],
    [{}, { seqTo: 19_000 }],
    [{}, { categories: ['category 7', 'category 8'], actions: ['action 7', 'action 8'] }],
  ]
  for (const [times, conditions = {}] of scanned) {
    for (const [single] of SINGLES) {
      for (const order of ['asc', 'desc'] as const) {
        const filter = { ...single, ...times }
        const about = JSON.stringify({ filter, conditions, order })
        assertScales(await explainPage(filter, null, { conditions, order }), about)
      }
    }
  }
  for (const order of ['asc', 'desc'] as const) {
    const traceId = 'a'.repeat(32)
    assertScales(await explainPage({ traceId }, null, { order }), `a trace id, ${order}`)
  }
})

test('a page with a short range of sequence numbers is read from their index', async () => {
  const ranges = [{ seqFrom: 100, seqTo: 200 }, { seqTo: 100 }, { seqFrom: 19_000 }]
  for (const conditions of ranges) {
    const about = JSON.stringify(conditions)
    const nodes = await explainPage({ category: 'category 7' }, null, { conditions })
    assertScales(nodes, about)
    const used = nodes.find((node) => node['Relation Name'] === partition)
    assert.match(String(used?.['Index Name']), /seq/, about)
  }
})

test('a page with two filters never reads the whole table', async () => {
  for (const [nth, [first]] of SINGLES.entries()) {
    // Their order makes no difference.
    for (const [second] of SINGLES.slice(nth)) {
      for (const range of RANGES) {
        const filter = { ...first, ...second, ...range }
        assertScales(await explainPage(filter), JSON.stringify(filter))
      }
    }
  }
})

test('does not read events that are not hot', async () => {
  const future = await explain(pool, (db) =>
    readPartialPage(db, {
      workspaceId,
      filter: NO_FILTER,
      hotSinceMs: nowMs + 62 * DAY_MS,
      after: null,
      limit: 50,
      bytesMax: PAGE_BYTES_MAX,
      rowsMax: SCANNED_ROWS_MAX,
    }),
  )
  assert(!relationsOf(future).includes(partition))
})

test('reading a chain reads only the requested events, in order', async () => {
  for (const afterSeq of [Number.MIN_SAFE_INTEGER, 0, 15_000]) {
    const nodes = await explain(pool, (db) =>
      listChainRun(db, { workspaceId, afterSeq, limit: 2_000 }),
    )
    assertScales(nodes, `after ${afterSeq}`)
    assertOrdered(nodes, `after ${afterSeq}`)
    const seen = { seq: afterSeq + 1, id: PROJECT }
    const further = await explain(pool, (db) =>
      listChainRun(db, { workspaceId, afterSeq, seen, limit: 2_000 }),
    )
    assertScales(further, `beside ${afterSeq}`)
    assertOrdered(further, `beside ${afterSeq}`)
  }
  const links = { workspaceId, fromSeq: 15_000, toSeq: 15_002 }
  assertScales(await explain(pool, (db) => listChainLinks(db, links)), 'links')
  assertScales(await explain(pool, (db) => readHead(db, workspaceId)), 'head')
})

test('finding an event by its id reads a few rows of one partition', async () => {
  const found = await query(
    connection,
    `select id from event where workspace_id = '${workspaceId}' and seq in (1, 2, 9998, 9999, 10000, 20000)`,
  )
  assert(found.length > 0)
  const ids = found.map((row) => assertId<'event'>(String(row['id'])))
  for (const id of [...ids, newId<'event'>(nowMs)]) {
    const find = (db: Queryable) => findStoredEvent(db, { workspaceIds: [workspaceId], id })
    assert.equal((await find(annals.app.database.db))?.id ?? null, ids.includes(id) ? id : null)
    const nodes = await explain(pool, find)
    assertScales(nodes, id)
    assertScales(await explainKept(pool, find), `${id}, kept`)
    const { rows } = await measureReads(pool, 'event', find)
    assert(rows < 40, `reads ${rows} rows`)
  }
})

test('PostgreSQL plans the search for an event only for the first few requests on a connection', async () => {
  await using database = new Database({
    connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger: createLogger('silent'),
  })
  const ids = Array.from({ length: 10 }, () => newId<'event'>(nowMs))
  for (const id of ids) await findStoredEvent(database.db, { workspaceIds: [workspaceId], id })
  const { rows } = await sql<{ kept: number }>`
    select generic_plans::int as kept from pg_prepared_statements where name like 'kept-%'`.execute(
    database.db,
  )
  assert.deepEqual(rows, [{ kept: ids.length - CUSTOM_PLANS }])
})

test('finding an event of a company costs a few rows per workspace, and stops at the one that has it', async () => {
  const others = Array.from({ length: 100 }, () => newId<'workspace'>())
  const [row] = await query(
    connection,
    `select id from event where workspace_id = '${workspaceId}' and seq = 10000`,
  )
  const id = assertId<'event'>(String(row?.['id']))
  const find = (workspaceIds: WorkspaceId[]) => (db: Queryable) =>
    findStoredEvent(db, { workspaceIds, id })
  const last = find([...others, workspaceId])
  assert.equal((await last(annals.app.database.db))?.id, id)
  assertScales(await explain(pool, last), 'a company')
  assertScales(await explainKept(pool, last), 'a company, kept')
  const { rows } = await measureReads(pool, 'event', last)
  assert(rows < 40, `reads ${rows} rows`)
  const first = await measureReads(pool, 'event', find([workspaceId, workspaceId, workspaceId]))
  assert(first.rows < 40, `reads ${first.rows} rows`)
})

test('finding the segments of an id reads one row per workspace', async () => {
  await query(
    connection,
    `insert into segment
     select '${workspaceId}', n, n, n::text, 1, '', '', '',
            overlay(event_id_floor(now())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
            now(), now(), now(), now(), now(), ''
       from generate_series(1, 5000) as n`,
  )
  await query(connection, 'analyze segment')
  const id = assertId<'event'>(`${newId(0).slice(0, 24)}000000000001`)
  const workspaceIds = [workspaceId, newId<'workspace'>()]
  const list = (db: Queryable) => listSegmentsOfId(db, { workspaceIds, id })
  for (const nodes of [await explain(pool, list), await explainKept(pool, list)]) {
    const used = nodes.find((node) => node['Relation Name'] === 'segment')
    assert.equal(used?.['Index Name'], 'segment__last_id', JSON.stringify(nodes))
    assert(!nodes.some((node) => node['Node Type'].includes('Sort')), JSON.stringify(nodes))
  }
  const { rows } = await measureReads(pool, 'segment', list)
  assert(rows <= workspaceIds.length, `reads ${rows} rows`)
})

test('comparing a chain with a replica reads its head and one event', async () => {
  const find = (db: Queryable) => findChainPosition(db, workspaceId)
  const last = await find(annals.app.database.db)
  assert.equal(last?.seq, 20_000)
  assertScales(await explainKept(pool, find), 'position')
  const confirm = (db: Queryable) => hasEvent(db, workspaceId, last)
  assertScales(await explainKept(pool, confirm), 'event')
  assert((await measureReads(pool, 'event', confirm)).rows <= 1)
})

test('looking for stray events reads only the default partition', async () => {
  const logger = createLogger('silent')
  await using owner = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const nodes = await explain(owner.pool, (db) => listStrayMonths(db, { limit: 24 }))
  assert.deepEqual(relationsOf(nodes), ['event_default'])
})

test('the writer finds keys and heads by index, whatever the statistics say', async () => {
  // Many keys, without statistics.
  await query(
    connection,
    `insert into idempotency_key
     select '${workspaceId}', gen_random_uuid(), gen_random_uuid(), n
       from generate_series(1, 20000) as n`,
  )
  const client = new Client({
    ...connection,
    options: WRITER_SETTINGS.map((setting) => `-c ${setting}`).join(' '),
  })
  await client.connect()
  try {
    await appendEvents(client, { moves: [], rows: [], keys: [] })
    await readHeads(client, [workspaceId])
    await lockHeads(client, [workspaceId])
    await assertByIndex(client)
    // Analyzed while empty, so that a scan of the tables seems to cost nothing.
    await query(connection, 'truncate idempotency_key')
    await query(connection, 'analyze idempotency_key, chain_head')
    await assertByIndex(client)
  } finally {
    await client.end()
  }
})

/** Every table in a prepared statement is read by index. */
async function assertByIndex(client: Client): Promise<void> {
  const { rows: prepared } = await client.query<{ name: string; count: number }>(
    `select name, cardinality(parameter_types) as count from pg_prepared_statements order by name`,
  )
  assert.deepEqual(
    prepared.map(({ name }) => name),
    ['append-events', 'lock-heads', 'read-heads'],
  )
  for (const { name, count } of prepared) {
    const values = Array.from({ length: count }, () => `'{}'`).join(', ')
    const nodes = await explainText(client, `execute "${name}" (${values})`)
    const tables = nodes.filter((node) => node['Relation Name'] !== undefined)
    for (const node of tables.filter((table) => table['Node Type'] !== 'ModifyTable')) {
      assert(SCANS_BY_INDEX.includes(node['Node Type']), `${name}: ${JSON.stringify(node)}`)
    }
    if (name === 'append-events') {
      assert(tables.some((node) => node['Index Name'] === 'idempotency_key_pkey'))
      assert(tables.some((node) => node['Index Name'] === 'chain_head_pkey'))
    }
  }
}
