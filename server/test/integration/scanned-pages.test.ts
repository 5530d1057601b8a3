import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import type { SealedEvent } from '../../src/ledger/event.ts'
import { type EventFilter, NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { readPartialPage } from '../../src/ledger/event-list-store.ts'
import { PAGE_BYTES_MAX, type PagePosition, SCANNED_ROWS_MAX } from '../../src/ledger/event-page.ts'
import { orderExclusions } from '../../src/ledger/filter/exclusion.ts'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { enroll } from '../harness/dashboard/console.ts'
import { countRows } from '../harness/database/count-rows.ts'
import { query } from '../harness/database/engine.ts'
import { explore, walkExplorer } from '../harness/dashboard/explorer.ts'
import { listPage, walkEvents } from '../harness/event/ledger.ts'
import { matchesFilter } from '../harness/event/metadata-match.ts'
import { startTestApp } from '../harness/app/start-app.ts'

/** Time passes quickly, so that a request has time for one scan. */
let nowMs = 0
const annals = await startTestApp({
  monotonic: () => (nowMs += 1_000),
  clock: Date.now,
  env: { ANNALS_RATE_LIMITS: 'off' },
  role: 'api',
})
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { db } = annals.app.database

const EVENTS = 46_000
const HOUR_MS = 3_600_000

/**
 * Category and action are both A or both B, each in every second event. Only two events have category A
 * and action B, further back than one scan reaches. Three events share a timestamp.
 */
async function seed(workspaceId: WorkspaceId, firstSeq: number, count: number): Promise<void> {
  await query(
    connection,
    `insert into event (seq, ts, received_at, id, workspace_id, company_id, hash, prev_hash,
                        category, action, actor, actor_id, resource, resource_id, sealed, salts)
     select n, date_trunc('second', now()) - (${EVENTS} - n) / 3 * interval '1 second', now(),
            overlay(event_id_floor(now())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
            '${workspaceId}', '${company.id}', sha256(n::text::bytea), sha256((n - 1)::text::bytea),
            case n % 2 when 0 then 'A' else 'B' end,
            case (n + (n in (4000, 25000))::int) % 2 when 0 then 'A' else 'B' end,
            '{"id":"ada"}', 'ada', '{"id":"' || r.id || '"}', r.id, '{}', '{}'
       from generate_series(${firstSeq}, ${firstSeq + count - 1}) as n
      cross join lateral (select case n % 5000 when 1 then 'rare' else 'r' || n % 7 end as id) as r`,
  )
  await query(
    connection,
    `update chain_head set seq = ${firstSeq + count - 1}, last_id = '${workspaceId}'
      where workspace_id = '${workspaceId}'`,
  )
}

const tenant = await annals.createCompany({ workspaces: ['One', 'Two'] })
const { company, companyKey, workspaceKey } = tenant
const workspaceId = tenant.workspace.id
const second = tenant.workspaces[1]
assert(second)

// The statistics cover only the oldest events.
await seed(workspaceId, 1, 2_000)
await query(connection, 'analyze event')
await seed(workspaceId, 2_001, EVENTS - 2_000)
await seed(second.id, 1, 24_500)

const listIn = (
  on: Queryable,
  filter: Partial<EventFilter>,
  position: PagePosition | null = null,
) =>
  readPartialPage(on, {
    workspaceId,
    filter: { ...NO_FILTER, ...filter },
    hotSinceMs: 0,
    after: position,
    limit: 50,
    bytesMax: PAGE_BYTES_MAX,
    rowsMax: SCANNED_ROWS_MAX,
  })

const RANGE = { fromMs: Date.now() - 24 * HOUR_MS, toMs: Date.now() + HOUR_MS }
const WITHOUT_A = orderExclusions([{ field: 'action', value: 'A' }])

/** Filters that match next to nothing, although each part matches every second event or all. */
const SCANS: [name: string, filter: Partial<EventFilter>, found: number][] = [
  ['two fields', { category: 'A', action: 'B' }, 2],
  ['two fields in a range of time', { category: 'A', action: 'B', ...RANGE }, 2],
  ['three fields', { category: 'A', action: 'B', actorId: 'ada' }, 2],
  ['a field and an excluded value', { category: 'A', excluded: WITHOUT_A }, 2],
  ['excluded values', { excluded: orderExclusions([{ field: 'actorId', value: 'ada' }]) }, 0],
  ['a text that no event contains', { text: 'nowhere' }, 0],
  ['an unknown trace', { traceId: '0'.repeat(31) + '1', ...RANGE }, 0],
]

for (const statistics of ['outdated', 'current']) {
  test(`a page reads a bounded number of rows with ${statistics} statistics`, async () => {
    if (statistics === 'current') await query(connection, 'analyze event')
    for (const [name, filter, found] of SCANS) {
      let events = 0
      let pages = 0
      let position: PagePosition | null = null
      do {
        const [page, rows] = await countRows(db, 'event', (trx) => listIn(trx, filter, position))
        assert(rows <= 2 * SCANNED_ROWS_MAX + 3 * 500, `${name}: ${rows} rows`)
        events += page.events.length
        pages += 1
        position = page.next
      } while (position !== null)
      assert.equal(events, found, name)
      assert(pages <= EVENTS / SCANNED_ROWS_MAX + 1, `${name}: ${pages} pages`)
    }
  })
}

test('the rarest of several filters is the one whose events are read', async () => {
  for (const filter of [
    { category: 'B', resourceId: 'rare' },
    { actorId: 'ada', resourceId: 'rare', ...RANGE },
    { category: 'B', action: 'B', actorId: 'ada', resourceId: 'none' },
  ]) {
    const [page, rows] = await countRows(db, 'event', (trx) => listIn(trx, filter))
    assert.deepEqual([page.events.length, page.next], [filter.resourceId === 'rare' ? 10 : 0, null])
    assert(rows <= 4 * 500 + 100, `${JSON.stringify(filter)}: ${rows} rows`)
  }
})

test('a page that is full immediately reads no more rows than it needs', async () => {
  const [page, rows] = await countRows(db, 'event', (trx) =>
    listIn(trx, { category: 'A', action: 'A' }),
  )
  assert.equal(page.events.length, 50)
  assert(rows <= 2 * 500 + 100, `${rows} rows`)
})

test('following nextCursor to the end finds every matching event, past an empty page', async () => {
  const filter = { category: 'A', action: 'B' }
  for (const [key, count] of [
    [workspaceKey, 2],
    [second.workspaceKey, 1],
    [companyKey, 3],
  ] as const) {
    const first = await listPage(annals, key, filter)
    assert.deepEqual([first.json.data.length, first.json.nextCursor === null], [0, false])
    const found = await walkEvents(annals, key, filter)
    const positions = found.map(({ timestamp, id }) => `${timestamp} ${id}`)
    assert.equal(new Set(positions).size, count)
    assert.deepEqual(positions, positions.toSorted().toReversed())
  }
})

test('the explorer scans in parts, also with text', async () => {
  const member = await enroll(annals, tenant, 'OWNER')
  await advanceRollup(db, workspaceId, { runMax: EVENTS })
  const filter = { workspaceId, category: 'A', action: 'B' }
  for (const parameters of [filter, { ...filter, text: 'ada' }, { ...filter, text: 'A' }]) {
    const first = await explore(member, parameters)
    assert.deepEqual([first.json.data.length, first.json.nextCursor === null], [0, false])
    assert.equal((await walkExplorer(member, parameters)).length, 2)
  }
})

test('scans of any size find exactly the matching events of any filters, in order', async () => {
  const own = await annals.createCompany()
  const pick = fc.constantFrom('a', 'b', 'c')
  const anyEvent = fc.record(
    { category: pick, action: pick, actor: fc.record({ id: pick }), timestampMs: fc.nat(20) },
    { requiredKeys: ['category', 'action', 'timestampMs'] },
  )
  const startMs = Date.now() - HOUR_MS
  const events = fc
    .sample(anyEvent, { numRuns: 400, seed: 5 })
    .map(({ timestampMs, ...event }) => ({
      ...event,
      timestamp: new Date(startMs + timestampMs).toISOString(),
    }))
  const body = { events }
  const sent = await annals.call('POST', '/v1/events/batch', { key: own.workspaceKey, body })
  assert.equal(sent.status, 200, sent.text)
  const read = async (filter: EventFilter, limit: number, rowsMax: number) => {
    const found: SealedEvent[] = []
    let position: PagePosition | null = null
    do {
      const page = await readPartialPage(db, {
        workspaceId: own.workspace.id,
        filter,
        hotSinceMs: 0,
        after: position,
        limit,
        bytesMax: PAGE_BYTES_MAX,
        rowsMax,
      })
      found.push(...page.events)
      position = page.next
    } while (position !== null)
    return found
  }
  const all = await read(NO_FILTER, 200, 1)
  assert.equal(all.length, 400)
  const orNull = <T>(any: fc.Arbitrary<T>) => fc.option(any, { freq: 1 })
  const anyExclusion = fc.record({ field: fc.constantFrom('category', 'actorId'), value: pick })
  const anyFilter = fc.record({
    fromMs: orNull(fc.integer({ min: startMs, max: startMs + 20 })),
    toMs: orNull(fc.integer({ min: startMs, max: startMs + 20 })),
    category: orNull(pick),
    action: orNull(pick),
    actorId: orNull(pick),
    text: orNull(pick),
    excluded: orNull(fc.array(anyExclusion, { minLength: 1, maxLength: 2 }).map(orderExclusions)),
  })
  const anySize = fc.constantFrom(1, 2, 3, 7, 50, 500)
  await fc.assert(
    fc.asyncProperty(
      anyFilter,
      anySize,
      fc.integer({ min: 15, max: 500 }),
      async (some, limit, rowsMax) => {
        const filter: EventFilter = { ...NO_FILTER, ...some }
        const found = await read(filter, Math.min(limit + 10, 200), rowsMax)
        const expected = all.filter((event) => matchesFilter(event, filter))
        assert.deepEqual(
          found.map(({ id }) => id),
          expected.map(({ id }) => id),
        )
      },
    ),
    { numRuns: 25, endOnFailure: true },
  )
})
