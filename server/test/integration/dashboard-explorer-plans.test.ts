import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { readPartialPage } from '../../src/ledger/event-list-store.ts'
import { PAGE_BYTES_MAX, SCANNED_ROWS_MAX } from '../../src/ledger/event-page.ts'
import type { Exclusion } from '../../src/ledger/filter/exclusion.ts'
import { findHotFloor } from '../../src/ledger/hot/hot-floor.ts'
import {
  addToRollup,
  removeFromRollup,
  listStaleRollups,
} from '../../src/ledger/rollup/rollup-store.ts'
import { advanceRollup, forgetRun } from '../../src/ledger/rollup/rollup.ts'
import {
  countByIndex,
  countByMatches,
  countInRuns,
} from '../../src/outlet/explorer/histogram/event-count-store.ts'
import { listContext } from '../../src/outlet/explorer/event-context-store.ts'
import { findFirstTimestamp } from '../../src/outlet/explorer/first-event-store.ts'
import {
  listMatchingEvents,
  listNewestContaining,
} from '../../src/outlet/explorer/histogram/matching-event-store.ts'
import { countValues, listValues } from '../../src/outlet/explorer/filter-option/option-store.ts'
import { readCandidateRuns } from '../../src/ledger/search/candidate-store.ts'
import { readRunBackward } from '../../src/ledger/table-run-store.ts'
import { ReceivedSearch } from '../../src/ledger/search/received-page.ts'
import { listBlockBuckets, listBlockRun } from '../../src/ledger/search/search-block-store.ts'
import { countByRollup } from '../../src/outlet/explorer/histogram/rollup-count-store.ts'
import {
  countListed,
  findTextMatches,
  hasEveryValue,
} from '../../src/outlet/explorer/filter-option/value-store.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { query } from '../harness/database/engine.ts'
import { explain, type PlanNode } from '../harness/database/explain.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { pool, db } = annals.app.database
const { company, workspace } = await annals.createCompany()
const workspaceId = workspace.id
const HOUR_MS = 3_600_000
const nowMs = Date.now()
const EVENTS = 20_000
const SEEN = 19_500

await query(
  connection,
  `insert into event (seq, ts, received_at, id, workspace_id, company_id, hash, prev_hash, category,
                      action, actor_id, actor_email, resource_type, resource_id, sealed, salts)
   select n, now() - n * interval '7 seconds', now(),
          overlay(event_id_floor(now())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
          '${workspaceId}', '${company.id}', sha256(n::text::bytea), sha256((n - 1)::text::bytea),
          'category ' || n % 20, 'action ' || n % 50, 'actor ' || n % 500, 'user' || n % 200 || '@x.y',
          'type ' || n % 10, 'resource ' || n % 5000, '{}', '{}'
     from generate_series(1, ${EVENTS}) as n`,
)
await query(
  connection,
  `update chain_head set seq = ${SEEN}, last_id = '${workspaceId}' where workspace_id = '${workspaceId}'`,
)
await advanceRollup(db, workspaceId, { runMax: EVENTS })
await query(
  connection,
  `update chain_head set seq = ${EVENTS} where workspace_id = '${workspaceId}'`,
)
await query(connection, 'analyze event')
await query(connection, 'analyze event_rollup, event_value, event_field, rollup_head')

const floor = await findHotFloor(db, workspaceId, { hotSinceMs: 0, afterSeq: null })
assert(floor.fromId !== null)
const hot = { ...floor, fromId: floor.fromId }
const range = { fromMs: nowMs - 30 * HOUR_MS - 1, toMs: nowMs - 1 }
const firstBarMs = Math.floor(range.fromMs / 900_000) * 900_000
const counted = {
  workspaceId,
  hot,
  range,
  filter: { ...NO_FILTER, ...range },
  by: 'action' as const,
  bars: Array.from({ length: 121 }, (_, nth) => firstBarMs + nth * 900_000),
  values: null,
  limit: 1_000,
}
const page = {
  workspaceId,
  hot,
  hotSinceMs: 0,
  filter: { ...NO_FILTER, text: 'actor 49', textIn: 'fields' as const },
  after: { timestampMs: nowMs, id: hot.fromId },
  limit: 50,
  bytesMax: PAGE_BYTES_MAX,
  rowsMax: SCANNED_ROWS_MAX,
}
const received = { ...page, hotFromId: hot.fromId, filter: NO_FILTER }
const matches = [
  { field: 'actorId' as const, value: 'actor 49', events: 40 },
  { field: 'resourceType' as const, value: 'type 4', events: 40 },
]

const excluded: Exclusion[] = [
  { field: 'category', value: 'category 3' },
  { field: 'category', value: 'category 7' },
]
const excludedActor: Exclusion[] = [...excluded, { field: 'actorId', value: 'actor 7' }]

const someCategories = excluded
const someActors: Exclusion[] = [7, 8, 9].map((n) => ({ field: 'actorId', value: `actor ${n}` }))

const byIp = { ...NO_FILTER, metadata: [{ path: 'ip', values: ['192.0.2.1'] }] }
const someRuns = {
  runs: [
    { firstSeq: 1, lastSeq: 1_024, minTimestampMs: 0, maxTimestampMs: nowMs },
    { firstSeq: 4_097, lastSeq: 5_120, minTimestampMs: 0, maxTimestampMs: nowMs },
  ],
  seenSeq: SEEN,
  headSeq: EVENTS,
}

const STATEMENTS: [name: string, run: (db: Queryable) => Promise<unknown>][] = [
  [
    'where hot events begin',
    (on) => findHotFloor(on, workspaceId, { hotSinceMs: 0, afterSeq: null }),
  ],
  ['the context of an event', (on) => listContext(on, { workspaceId, fromSeq: 500, toSeq: 510 })],
  ['the first timestamp', (on) => findFirstTimestamp(on, [workspaceId])],
  ['counts by the roll-up', (on) => countByRollup(on, counted)],
  ['the first values by the roll-up', (on) => countByRollup(on, { ...counted, bars: null })],
  [
    'counts of one category',
    (on) =>
      countByRollup(on, { ...counted, filter: { ...counted.filter, category: 'category 7' } }),
  ],
  [
    'counts without some categories',
    (on) => countByRollup(on, { ...counted, filter: { ...counted.filter, excluded } }),
  ],
  [
    'counts without an actor',
    (on) =>
      countByRollup(on, { ...counted, filter: { ...counted.filter, excluded: excludedActor } }),
  ],
  [
    'counts without a frequent actor',
    (on) =>
      countByIndex(on, { ...counted, filter: { ...counted.filter, excluded: excludedActor } }),
  ],
  [
    'how many events have some values',
    (on) => countListed(on, { workspaceId, values: excludedActor }),
  ],
  [
    'a page without some categories and an actor',
    (on) =>
      readPartialPage(on, {
        ...page,
        hotFromId: hot.fromId,
        filter: { ...NO_FILTER, ...range, excluded: excludedActor },
      }),
  ],
  [
    'counts of some categories',
    (on) => countByRollup(on, { ...counted, filter: { ...counted.filter, anyOf: someCategories } }),
  ],
  [
    'counts of some actors',
    (on) => countByIndex(on, { ...counted, filter: { ...counted.filter, anyOf: someActors } }),
  ],
  [
    'a page of some actors in some categories',
    (on) =>
      readPartialPage(on, {
        ...page,
        hotFromId: hot.fromId,
        filter: { ...NO_FILTER, ...range, anyOf: [...someCategories, ...someActors] },
      }),
  ],
  [
    'counts of one actor',
    (on) => countByIndex(on, { ...counted, filter: { ...counted.filter, actorId: 'actor 7' } }),
  ],
  ['counts of a text', (on) => countByMatches(on, counted, { matches, seenSeq: SEEN })],
  [
    'counts of a text by the roll-up',
    (on) =>
      countByRollup(
        on,
        { ...counted, filter: { ...counted.filter, text: '4', textIn: 'fields' } },
        [{ field: 'category', value: 'category 4', events: 40 }, ...matches],
      ),
  ],
  [
    'values that hold a text',
    (on) => findTextMatches(on, { workspaceId, text: 'actor 4', limit: 10 }),
  ],
  [
    'suggested values',
    (on) => listValues(on, { workspaceId, hot, field: 'resourceId', contains: null, limit: 20 }),
  ],
  [
    'suggested values that hold what was typed',
    (on) => listValues(on, { workspaceId, hot, field: 'resourceId', contains: '4', limit: 20 }),
  ],
  [
    'counts of values',
    (on) => countValues(on, { workspaceId, hot, field: 'resourceId', values: ['4', '5'] }),
  ],
  ['whether all values are listed', (on) => hasEveryValue(on, { workspaceId, field: 'actorId' })],
  ['a page of what holds a text', (on) => listMatchingEvents(on, page, { matches, seenSeq: SEEN })],
  [
    'the blocks that may have a value',
    (on) => listBlockBuckets(on, { workspaceId, afterSeq: 1, ...range, tokens: [1, 2], limit: 9 }),
  ],
  [
    'a page of some blocks',
    (on) => readCandidateRuns(on, { ...page, filter: byIp }, { ...someRuns, untilMs: nowMs - 1 }),
  ],
  [
    'a page of an actor in the order of receipt',
    (on) =>
      new ReceivedSearch().readPage(on, {
        ...received,
        filter: { ...NO_FILTER, actorId: 'actor 7' },
      }),
  ],
  [
    'a page of a long chain in the order of receipt',
    (on) => new ReceivedSearch().readPage(on, { ...received, filter: NO_FILTER }),
  ],
  [
    'a run by metadata in the order of receipt',
    (on) =>
      readRunBackward(on, { ...received, filter: byIp, fromSeq: EVENTS - 100, toSeq: EVENTS }),
  ],
  [
    'a page of a range of receipt',
    (on) =>
      readPartialPage(on, {
        ...page,
        hotFromId: hot.fromId,
        filter: { ...NO_FILTER, ...range, receivedFromMs: nowMs - HOUR_MS },
      }),
  ],
  [
    'counts by a path of the metadata',
    (on) => countByIndex(on, { ...counted, by: 'metadata.request.id' }),
  ],
  ['counts of some blocks', (on) => countInRuns(on, { ...counted, filter: byIp }, someRuns)],
  [
    'the next events to put into blocks',
    (on) =>
      listBlockRun(on, { workspaceId, afterSeq: 100, toSeq: EVENTS, limit: 50, bytesMax: 1_000 }),
  ],
  [
    'a page of what the newest events hold',
    (on) => listNewestContaining(on, page, { eventsMax: 500 }),
  ],
]

for (const [name, run] of STATEMENTS) {
  test(`${name}: uses an index, and reads only the requested part of the chain`, async () => {
    assertByIndex(await explain(pool, run))
  })
}

test('counting reads only the events that it counts', async () => {
  const run = { workspaceId, afterSeq: SEEN, toSeq: SEEN + 10 }
  const within = { ...run, floorSeq: 0, daySeq: EVENTS }
  assertByIndex(await explain(pool, (on) => addToRollup(on, within, { isMarking: true })))
  assertByIndex(await explain(pool, (on) => removeFromRollup(on, run)))
  const nodes = await explain(pool, (on) =>
    listStaleRollups(on, { thresholds: [{ eventsMin: 1, waitMs: 0 }], except: [], limit: 10 }),
  )
  assert(nodes.every((node) => !node['Relation Name']?.startsWith('event')))
})

/** Every scan of a large table uses an index condition on more than the workspace. */
function assertByIndex(nodes: readonly PlanNode[]): void {
  const big = nodes.filter((node) =>
    /^event_2|^event$|^event_(rollup|value)$/.test(node['Relation Name'] ?? ''),
  )
  for (const node of big.filter((other) => other['Node Type'] !== 'ModifyTable')) {
    const shown = JSON.stringify(node)
    assert.match(node['Node Type'], /^(Index|Bitmap Heap|Index Only|Tid)/, shown)
    if (!node['Node Type'].startsWith('Index') || isEmpty(node)) continue
    const columns = new Set(
      node['Index Cond']?.match(
        /\b(seq|ts|id|bucket|field|value|category|action|actor_id|resource_type)\b/g,
      ),
    )
    assert(columns.size > 0, shown)
  }
}

/** Only the partition of this month has rows. */
function isEmpty(node: PlanNode): boolean {
  const month = new Date(nowMs).toISOString().slice(0, 7).replace('-', '_')
  const name = node['Relation Name'] ?? ''
  return name.startsWith('event_2') && name !== `event_${month}`
}

test('counts workspaces without statistics', async () => {
  const other = await annals.createCompany()
  await query(
    connection,
    `insert into event (seq, ts, received_at, id, workspace_id, company_id, hash, prev_hash, category,
                        action, actor_id, actor_email, resource_type, resource_id, sealed, salts)
     select seq, ts, received_at, id, '${other.workspace.id}', '${other.company.id}', hash, prev_hash, category,
            action, actor_id || seq, actor_email || seq, resource_type, resource_id || seq, sealed, salts
       from event where workspace_id = '${workspaceId}'`,
  )
  const seeUpTo = async (seq: number) => {
    await query(
      connection,
      `update chain_head set seq = ${seq}, last_id = '${hot.fromId}'
        where workspace_id = '${other.workspace.id}'`,
    )
    await advanceRollup(db, other.workspace.id, { runMax: EVENTS })
  }
  await seeUpTo(EVENTS - 1_000)
  // Statements that compare every value with every other are canceled after 30 seconds.
  await seeUpTo(EVENTS)
  await db.transaction().execute(async (trx) => {
    await forgetRun(trx, { workspaceId: other.workspace.id, toSeq: EVENTS / 2 })
  })
})
