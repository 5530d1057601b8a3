import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { PAGE_BYTES_MAX } from '../../src/ledger/event-page.ts'
import { findHotFloor } from '../../src/ledger/hot/hot-floor.ts'
import { ReceivedSearch } from '../../src/ledger/search/received-page.ts'
import { advanceSearchBlocks } from '../../src/ledger/search/search-blocks.ts'
import type { PagePosition } from '../../src/ledger/event-page.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import {
  explore,
  type Parameters,
  readHistogram,
  sendEvents,
  walkExplorer,
} from '../harness/dashboard/explorer.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const { clock, advance } = manualClock()
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

type EventRecord = TestResponse['json']

const company = await annals.createCompany({ plan: 'PRO', workspaces: ['A', 'B'] })
const member = await signInAs(annals, company, 'OWNER')
const [first, second] = company.workspaces
assert(first && second)
const startMs = clock()
const at = (ms: number) => new Date(ms).toISOString()

/** Rounds of events, one minute apart: some late, some ahead of time, and once the clock is set back. */
const ROUNDS = 14
const PER_ROUND = 90
for (let round = 0; round < ROUNDS; round += 1) {
  advance(round === 9 ? -3 * MINUTE_MS : MINUTE_MS)
  const events = Array.from({ length: PER_ROUND }, (_, nth) => ({
    category: nth % 3 === 0 ? 'auth' : 'billing',
    action: `a${nth % 5}`,
    timestamp: at(clock() + ((nth * 37) % 200) * MINUTE_MS - 150 * MINUTE_MS),
    actor: { id: `u${nth % 7}` },
    resource: { type: 'doc', id: `d${(round * PER_ROUND + nth) % 40}` },
    metadata: { ip: `192.0.2.${nth % 11}`, nth: round * PER_ROUND + nth },
  }))
  await sendEvents(annals, first.workspaceKey, events)
  if (round % 4 === 0) await sendEvents(annals, second.workspaceKey, events.slice(0, 12))
}
await advanceSearchBlocks(db, first.id, { owner: company.company.id })
advance(MINUTE_MS)

const DAY = { from: at(startMs - 24 * HOUR_MS), to: at(startMs + 24 * HOUR_MS) }
const all: EventRecord[] = await walkExplorer(member, { ...DAY, limit: '200' })
assert.equal(all.length, ROUNDS * PER_ROUND + 4 * 12)

const byReceipt = (events: readonly EventRecord[]) =>
  events.toSorted((a, b) => (a.id < b.id ? 1 : -1)).map(({ id }) => id)
const byTime = (events: readonly EventRecord[]) =>
  events
    .toSorted((a, b) => (`${a.timestamp}/${a.id}` < `${b.timestamp}/${b.id}` ? 1 : -1))
    .map(({ id }) => id)

const FILTERS: [Parameters, (event: EventRecord) => boolean][] = [
  [{}, () => true],
  [{ workspaceId: first.id }, ({ workspaceId }) => workspaceId === first.id],
  [{ actorId: 'u3' }, ({ actor }) => actor.id === 'u3'],
  [{ category: ['auth', 'billing'], not: 'action:a1' }, ({ action }) => action !== 'a1'],
  [{ 'metadata.ip': '192.0.2.5' }, ({ metadata }) => metadata.ip === '192.0.2.5'],
  [{ 'metadata.nth': '17' }, ({ metadata }) => metadata.nth === 17],
  [{ text: 'D1' }, ({ resource }) => resource.id.includes('d1')],
]
const RANGES: [Parameters, (receivedAtMs: number) => boolean][] = [
  [{}, () => true],
  [{ receivedFrom: at(startMs + 5 * MINUTE_MS) }, (ms) => ms >= startMs + 5 * MINUTE_MS],
  [{ receivedTo: at(startMs + 8 * MINUTE_MS) }, (ms) => ms < startMs + 8 * MINUTE_MS],
  [
    { receivedFrom: at(startMs + 6 * MINUTE_MS), receivedTo: at(startMs + 7 * MINUTE_MS + 1) },
    (ms) => ms >= startMs + 6 * MINUTE_MS && ms <= startMs + 7 * MINUTE_MS,
  ],
  [{ receivedFrom: at(startMs + HOUR_MS) }, () => false],
]

for (const [filter, isMatch] of FILTERS) {
  test(`lists, sorts and counts by time of receipt with ${JSON.stringify(filter)}`, async () => {
    for (const [range, isReceived] of RANGES) {
      const about = JSON.stringify({ filter, range })
      const parameters = { ...DAY, ...filter, ...range }
      const wanted: EventRecord[] = all.filter(
        (event) => isMatch(event) && isReceived(Date.parse(event.receivedAt)),
      )
      const limit = String(Math.min(200, Math.max(10, Math.ceil(wanted.length / 3))))
      const idsOf = async (sort: string) =>
        (await walkExplorer(member, { ...parameters, limit, sort })).map(({ id }) => id)
      assert.deepEqual(await idsOf('timestamp'), byTime(wanted), about)
      assert.deepEqual(await idsOf('receivedAt'), byReceipt(wanted), about)
      const { status, json, text } = await readHistogram(member, { ...parameters, by: 'none' })
      assert.deepEqual([status, json.total], [200, wanted.length], `${about} ${text}`)
    }
  })
}

test('the order of a chain is read a part at a time, hot events only, with and without blocks', async () => {
  const hot = await findHotFloor(db, first.id, { hotSinceMs: 0, afterSeq: null })
  assert(hot.fromId !== null)
  const page = {
    workspaceId: first.id,
    hot,
    hotFromId: hot.fromId,
    hotSinceMs: 0,
    limit: 7,
    bytesMax: PAGE_BYTES_MAX,
    rowsMax: 50,
  }
  const filters = [
    { actorId: 'u3' },
    { receivedFromMs: startMs + 5 * MINUTE_MS },
    { metadata: [{ path: 'ip', values: ['192.0.2.5'] }] },
  ]
  const isMatch = [
    ({ actor }: EventRecord) => actor.id === 'u3',
    ({ receivedAt }: EventRecord) => Date.parse(receivedAt) >= startMs + 5 * MINUTE_MS,
    ({ metadata }: EventRecord) => metadata.ip === '192.0.2.5',
  ]
  for (const [nth, filter] of filters.entries()) {
    const search = new ReceivedSearch()
    const found: string[] = []
    let after: PagePosition | null = null
    let pages = 0
    do {
      const read = await search.readPage(db, {
        ...page,
        filter: { ...NO_FILTER, ...filter },
        after,
      })
      found.push(...read.events.map(({ id }) => id))
      after = read.next
      pages += 1
    } while (after !== null && pages < 1_000)
    const wanted: EventRecord[] = all.filter(
      (event: EventRecord) => event.workspaceId === first.id && isMatch[nth]?.(event) === true,
    )
    assert.deepEqual(found, byReceipt(wanted), JSON.stringify(filter))
  }
})

test('a histogram by resource ID or by a metadata key counts each value, and the others together', async () => {
  const counts = (valueOf: (event: EventRecord) => string) => {
    const groups = Map.groupBy(all, valueOf)
    return new Map([...groups].map(([value, { length }]) => [value, length]))
  }
  const cases: [by: string, counts: ReadonlyMap<string, number>][] = [
    ['resourceId', counts(({ resource }) => resource.id)],
    ['metadata.ip', counts(({ metadata }) => metadata.ip)],
    ['metadata.nothing', new Map()],
  ]
  for (const [by, wanted] of cases) {
    const { status, json, text } = await readHistogram(member, { ...DAY, by })
    assert.equal(status, 200, text)
    assert.deepEqual([json.total, json.isGrouped], [all.length, true], by)
    const named = json.series.filter(({ value }: { value: string | null }) => value !== null)
    assert.equal(named.length, Math.min(8, wanted.size), by)
    for (const { value, total } of named) assert.equal(total, wanted.get(value), `${by} ${value}`)
    const most = [...wanted.values()].toSorted((a, b) => b - a).slice(0, 8)
    assert.deepEqual(
      named.map(({ total }: { total: number }) => total),
      most,
      by,
    )
  }
  for (const by of ['metadata.', 'metadata', 'traceId', `metadata.${'k'.repeat(300)}`]) {
    assert.equal((await readHistogram(member, { ...DAY, by })).status, 400, by)
  }
})

test('a metadata key groups nested, dotted and other values as filters compare them', async () => {
  const other = await annals.createCompany()
  const owner = await signInAs(annals, other, 'OWNER')
  const metadata: [object | null, value: string | null][] = [
    [{ a: { b: 'x' } }, 'x'],
    [{ 'a.b': 'x' }, 'x'],
    [{ a: { b: 7 } }, '7'],
    [{ a: { b: null } }, 'null'],
    [{ a: { b: 'x', c: 'q' }, 'a.b': 'y' }, null],
    [{ a: [{ b: 'x' }] }, 'x'],
    [{ a: [{ b: 'x' }, { b: 'z' }] }, null],
    [{ a: { b: {} } }, null],
    [{ a: { b: ['x'] } }, 'x'],
    [{ b: 'x' }, null],
    [{ a: { b: 'l'.repeat(2_000) } }, null],
    [null, null],
  ]
  const events = metadata.map(([value]) => ({
    category: 'c',
    action: 'a',
    ...(value !== null && { metadata: value }),
  }))
  await sendEvents(annals, other.workspaceKey, events)
  advance(1)
  const { json } = await readHistogram(owner, { by: 'metadata.a.b' })
  const found = Object.fromEntries(
    json.series.map(({ value, total }: { value: string | null; total: number }) => [value, total]),
  )
  const wanted = Map.groupBy(metadata, ([, value]) => String(value))
  // The key `null` of both objects stands for the value null and for the others, so count those apart.
  assert.equal(found['x'], wanted.get('x')?.length)
  assert.equal(found['7'], 1)
  const nulls = json.series.filter(({ value }: { value: string | null }) => value === 'null')
  assert.deepEqual(
    nulls.map(({ total }: { total: number }) => total),
    [1],
  )
  assert.equal(json.series.at(-1).value, null)
  assert.equal(json.series.at(-1).total, metadata.filter(([, value]) => value === null).length)
})

test('a cursor is bound to the order and to the range of receipt', async () => {
  const asked = { ...DAY, limit: '10', sort: 'receivedAt', receivedTo: at(clock()) }
  const { json } = await explore(member, asked)
  const { nextCursor: cursor } = json
  assert.equal((await explore(member, { ...asked, cursor, limit: '20' })).status, 200)
  const others: Parameters[] = [
    { ...asked, sort: 'timestamp' },
    { ...asked, receivedTo: at(clock() + 1) },
    { ...asked, receivedFrom: at(startMs) },
  ]
  for (const other of others) {
    const { status, json: refused } = await explore(member, { ...other, cursor })
    assert.deepEqual([status, refused.code], [400, 'invalid_cursor'], JSON.stringify(other))
  }
  const { status, json: invalid } = await explore(member, {
    receivedFrom: at(startMs),
    receivedTo: at(startMs),
  })
  assert.deepEqual([status, invalid.details[0].path], [400, 'receivedFrom'])
})

test('a view saves the range and the order of receipt, and an export has the same events', async () => {
  const receivedFrom = at(startMs + 6 * MINUTE_MS)
  const query = { ...DAY, receivedFrom, sort: 'receivedAt', groupBy: 'metadata.ip' }
  const view = await member.call('POST', '/dashboard/explorer/views', {
    body: { name: 'Since the outage', workspaceId: first.id, visibility: 'PRIVATE', query },
  })
  assert.equal(view.status, 201, view.text)
  assert.deepEqual(view.json.query, query)
  const wanted = all.filter(
    (event) => event.workspaceId === first.id && event.receivedAt >= receivedFrom,
  )
  const run = await member.call('POST', `/dashboard/explorer/views/${view.json.id}/run`, {
    body: { limit: 200 },
  })
  assert.deepEqual(
    run.json.data.map(({ id }: EventRecord) => id),
    byReceipt(wanted).slice(0, 200),
  )
  const filters = { ...DAY, receivedFrom, workspaceId: first.id }
  const job = await member.call('POST', '/dashboard/exports', {
    body: { source: 'HOT', format: 'JSONL', filters },
  })
  assert.equal(job.status, 201, job.text)
  assert.equal(job.json.filters.receivedFrom, receivedFrom)
  const file = await member.call('GET', `/dashboard/exports/${job.json.id}/download`)
  const lines = file.text.trimEnd().split('\n')
  const ids: string[] = lines.map((line) => JSON.parse(line).id)
  assert.deepEqual(ids, byReceipt(wanted).toReversed())
})
