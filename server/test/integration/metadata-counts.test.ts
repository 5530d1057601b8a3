import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { findHotFloor } from '../../src/ledger/hot/hot-floor.ts'
import { findCandidates } from '../../src/ledger/search/candidate-runs.ts'
import { countPostings } from '../../src/outlet/explorer/histogram/count-postings.ts'
import { signInAs, type Member } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import {
  type Parameters,
  readHistogram,
  removeUpTo,
  sendEvents,
} from '../harness/dashboard/explorer.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { buildSearchBlocks, nodesOf, walkEvents } from '../harness/event/metadata-search.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const HOUR_MS = 3_600_000
const BLOCK_EVENTS = 64
const START_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 48 * HOUR_MS
const RANGE = {
  from: new Date(START_MS + 2 * HOUR_MS + 90_000).toISOString(),
  to: new Date(START_MS + 40 * HOUR_MS).toISOString(),
}

/** Frequent, occasional, rare and unique values, and timestamps that are not in order. */
function event(nth: number) {
  return {
    category: `c${nth % 3}`,
    action: `a${nth % 11}`,
    timestamp: new Date(START_MS + nth * 6 * 60_000 - (nth % 5) * 11 * 60_000).toISOString(),
    actor: { id: `u${nth % 5}`, role: nth % 4 === 0 ? 'admin' : 'member' },
    metadata: {
      isOk: nth % 10 !== 0,
      ip: `192.0.2.${nth % 16}`,
      session: `s${nth % 90}`,
      request: { id: `req_${nth}`, tags: ['all', `t${nth % 7}`, `T${nth % 2}`] },
      ...(nth % 13 === 0 && { note: null }),
    },
  }
}

const events = (count: number, from: number) =>
  Array.from({ length: count }, (_, index) => event(from + index))

type Found = TestResponse['json']

const has =
  (path: string, ...texts: (string | null)[]) =>
  ({ metadata }: Found): boolean =>
    nodesOf(metadata).some(([at, text]) => at === path && texts.includes(text))

const QUERIES: [Parameters, (event: Found) => boolean][] = [
  [{ 'metadata.isOk': 'true' }, has('isOk', 'true')],
  [{ 'metadata.isOk': ['true', 'false'] }, () => true],
  [{ 'metadata.isOk': 'other' }, () => false],
  [{ 'metadata.ip': '192.0.2.7' }, has('ip', '192.0.2.7')],
  [{ 'metadata.ip': ['192.0.2.7', '192.0.2.9', 'x'] }, has('ip', '192.0.2.7', '192.0.2.9')],
  [{ 'metadata.session': 's42' }, has('session', 's42')],
  [{ 'metadata.request.id': 'req_17' }, has('request.id', 'req_17')],
  [{ 'metadata.request.tags': 'all' }, has('request.tags', 'all')],
  [{ 'metadata.request.tags': 'T1' }, has('request.tags', 'T1')],
  [{ hasMetadata: 'request' }, () => true],
  [{ hasMetadata: 'note' }, has('note', 'null')],
  [{ actorRole: 'admin' }, ({ actor }) => actor.role === 'admin'],
  [
    { 'metadata.isOk': 'true', 'metadata.ip': '192.0.2.3', hasMetadata: 'session' },
    (one) => has('isOk', 'true')(one) && has('ip', '192.0.2.3')(one),
  ],
  [
    { 'metadata.isOk': 'true', category: 'c1', action: 'a4' },
    (one) => has('isOk', 'true')(one) && one.category === 'c1' && one.action === 'a4',
  ],
  [
    { 'metadata.isOk': 'true', actorId: 'u3' },
    (one) => has('isOk', 'true')(one) && one.actor.id === 'u3',
  ],
  [{ text: '192.0.2.7' }, has('ip', '192.0.2.7')],
  [{ text: 'T1' }, has('request.tags', 't1', 'T1')],
  [
    { text: 'T1', category: 'c1' },
    (one) => has('request.tags', 't1', 'T1')(one) && one.category === 'c1',
  ],
  [{ text: 'ALL' }, () => true],
  [{ text: 'a1' }, ({ action }) => action === 'a1' || action === 'a10'],
  [{ text: 'req_17' }, has('request.id', 'req_17')],
]

const GROUPINGS = ['none', 'category', 'action']
const GROUPINGS_PER_QUERY = rounds(1, GROUPINGS.length)
let firstGrouping = 0

/**
 * Compares the histogram of every query with a plain scan. In `npm test`, each call groups a query by one field,
 * and the next call by another one.
 */
async function assertAllCounted(member: Member, key: string): Promise<void> {
  const all = await walkEvents(annals, key, RANGE)
  firstGrouping += 1
  for (const [nth, [parameters, isMatch]] of QUERIES.entries()) {
    for (let more = 0; more < GROUPINGS_PER_QUERY; more += 1) {
      const by = GROUPINGS[(firstGrouping + nth + more) % GROUPINGS.length] ?? 'none'
      const { status, json, text } = await readHistogram(member, { ...parameters, ...RANGE, by })
      assert.equal(status, 200, text)
      const matches = all.filter(isMatch)
      const starts = json.bars.map((bar: string) => Date.parse(bar))
      const barOf = ({ timestamp }: Found) =>
        starts.findLastIndex((startMs: number) => startMs <= Date.parse(timestamp))
      const wanted = Map.groupBy(matches, barOf)
      const label = JSON.stringify({ parameters, by })
      assert.equal(json.total, matches.length, label)
      for (const bar of starts.keys()) {
        const counts = json.series.map((one: { counts: number[] }) => one.counts[bar])
        const sum = counts.reduce((total: number, count: number) => total + count, 0)
        assert.equal(sum, wanted.get(bar)?.length ?? 0, `${label}, bar ${bar}`)
      }
      for (const { value, total } of json.series) {
        if (value === null || by === 'none') continue
        const own = matches.filter((one) => one[by] === value)
        assert.equal(total, own.length, `${label}, ${value}`)
      }
    }
  }
}

async function newWorkspace() {
  const company = await annals.createCompany({ plan: 'PRO' })
  const member = await signInAs(annals, company, 'ADMIN')
  return { workspaceId: company.workspace.id, key: company.workspaceKey, member }
}

test('counts exactly what a plain scan finds, in blocks, outside of them and in removed ones', async () => {
  const { workspaceId, key, member } = await newWorkspace()
  await sendEvents(annals, key, events(300, 0))
  await assertAllCounted(member, key)
  await buildSearchBlocks(db, workspaceId, BLOCK_EVENTS)
  await assertAllCounted(member, key)
  await advanceRollup(db, workspaceId, { runMax: 150 })
  await assertAllCounted(member, key)
  await advanceRollup(db, workspaceId, { runMax: 1_000 })
  await sendEvents(annals, key, events(60, 300))
  await assertAllCounted(member, key)
  await removeUpTo(annals, workspaceId, 100)
  await assertAllCounted(member, key)
})

test('counts frequent values without reading the events, and rare ones by a few slices', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(BLOCK_EVENTS * 4, 0))
  await buildSearchBlocks(db, workspaceId, BLOCK_EVENTS)
  const floor = await findHotFloor(db, workspaceId, { hotSinceMs: 0, afterSeq: null })
  assert(floor.fromId !== null)
  const hot = { ...floor, fromId: floor.fromId }
  const range = { fromMs: START_MS - HOUR_MS, toMs: Date.now() }
  const count = async (path: string, value: string) => {
    const filter = { ...NO_FILTER, ...range, metadata: [{ path, values: [value] }] }
    const candidates = await findCandidates(db, { workspaceId, filter })
    assert(candidates)
    const { blocks } = candidates
    const options = { by: 'category', bars: null, values: null, limit: 100 } as const
    return await countPostings(db, { workspaceId, hot, range, filter, ...options }, blocks)
  }
  for (const [path, value] of [
    ['isOk', 'true'],
    ['ip', '192.0.2.3'],
    ['request.tags', 'all'],
  ] as const) {
    const { counts, rest } = await count(path, value)
    assert.deepEqual(rest, [], path)
    const wanted = events(BLOCK_EVENTS * 4, 0).filter((one) => has(path, value)(one))
    const total = counts.reduce((sum, { events: some }) => sum + some, 0)
    assert.equal(total, wanted.length, path)
  }
  const { rest } = await count('request.id', 'req_70')
  assert(rest.some(({ firstSeq, lastSeq }) => firstSeq <= 71 && lastSeq >= 71))
  const read = rest.reduce((sum, { events: some }) => sum + some, 0)
  assert(read <= BLOCK_EVENTS / 4, `${read} events`)
})

test('a block without facts is read', async () => {
  const { workspaceId, key, member } = await newWorkspace()
  await sendEvents(annals, key, events(150, 0))
  await buildSearchBlocks(db, workspaceId, BLOCK_EVENTS)
  await query(
    annals.database.connection,
    `update search_block set seed = null, facts = null, postings = null
      where workspace_id = '${workspaceId}' and first_seq = 1`,
  )
  await assertAllCounted(member, key)
})
