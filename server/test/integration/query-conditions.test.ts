import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { LISTED_VALUES_MAX } from '../../src/ledger/filter/list-conditions.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { idsOf } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

type EventRecord = TestResponse['json']
type Parameters = [name: string, value: string | number][]

const CATEGORIES = ['billing', 'auth', 'Ünïcode 🎈', 'a&b=c%']
const ACTIONS = ['create', 'delete', 'update']
const TRACES = ['1'.repeat(32), 'abcdef'.padEnd(32, '0')]
const START_MS = clock()
/** More than a run that is read by sequence numbers if several workspaces share the rows. */
const EVENTS = 700

const pathOf = (parameters: Parameters) => {
  const search = new URLSearchParams()
  for (const [name, value] of parameters) search.append(name, String(value))
  return `/v1/events?${search.toString()}`
}

async function walk(key: string, parameters: Parameters): Promise<EventRecord[]> {
  const events: EventRecord[] = []
  let cursor: string | null = null
  do {
    const position: Parameters = cursor === null ? [] : [['cursor', cursor]]
    const path = pathOf([...parameters, ...position])
    const { status, json, text } = await annals.call('GET', path, { key })
    assert.equal(status, 200, text)
    events.push(...json.data)
    cursor = json.nextCursor
  } while (cursor !== null)
  return events
}

const tenant = await annals.createCompany({ workspaces: ['One', 'Two'] })
const [one, two] = tenant.workspaces
assert(one && two)

/** Batches at different times of receipt, with timestamps in another order. */
for (let start = 0; start < EVENTS; start += 100) {
  for (const { workspaceKey: key } of [one, two]) {
    const events = Array.from({ length: 100 }, (_, index) => ({
      category: CATEGORIES[index % CATEGORIES.length],
      action: ACTIONS[index % ACTIONS.length],
      timestamp: new Date(START_MS - ((start + index) % 7) * 1_000).toISOString(),
      actor: { id: `u${index % 5}` },
    }))
    const traceparent = `00-${TRACES[(start / 100) % TRACES.length]}-${'1'.repeat(16)}-01`
    const response = await annals.call('POST', '/v1/events/batch', {
      key,
      body: { events },
      headers: { traceparent },
    })
    assert.equal(response.status, 200, response.text)
  }
  advance(60_000)
}
const all = await walk(tenant.companyKey, [['limit', 200]])
assert.equal(all.length, 2 * EVENTS)

type Query = {
  category: string[]
  action: string[]
  actorId: string[]
  traceId: string[]
  order: string[]
  from: string[]
  to: string[]
  receivedFrom: string[]
  receivedTo: string[]
  seqFrom: number[]
  seqTo: number[]
}

const atMost = <T>(value: fc.Arbitrary<T>, maxLength: number) => fc.array(value, { maxLength })
const anyTimestamp = fc.integer({ min: -8, max: 1 }).map((n) => iso(START_MS + n * 1_000))
const anyReceipt = fc.integer({ min: -1, max: 8 }).map((n) => iso(START_MS + n * 60_000))
const iso = (ms: number) => new Date(ms).toISOString()

const anyQuery: fc.Arbitrary<Query> = fc
  .record({
    category: atMost(fc.constantFrom(...CATEGORIES, 'none'), 4),
    action: atMost(fc.constantFrom(...ACTIONS, 'none'), 3),
    actorId: atMost(fc.constantFrom('u0', 'u1'), 1),
    traceId: atMost(fc.constantFrom(...TRACES, 'f'.repeat(32)), 1),
    order: atMost(fc.constantFrom('asc', 'desc'), 1),
    from: atMost(anyTimestamp, 1),
    to: atMost(anyTimestamp, 1),
    receivedFrom: atMost(anyReceipt, 1),
    receivedTo: atMost(anyReceipt, 1),
    seqFrom: atMost(fc.integer({ min: 1, max: EVENTS + 10 }), 1),
    seqTo: atMost(fc.integer({ min: 1, max: EVENTS + 10 }), 1),
  })
  .filter(
    ({ from, to, receivedFrom, receivedTo, seqFrom, seqTo }) =>
      isAscending(from, to) && isAscending(receivedFrom, receivedTo) && isAtMost(seqFrom, seqTo),
  )

const isAscending = ([low]: string[], [high]: string[]) =>
  low === undefined || high === undefined || low < high
const isAtMost = ([low]: number[], [high]: number[]) =>
  low === undefined || high === undefined || low <= high

/** An independent implementation of the parameters. */
function expected(query: Query, workspaceIds: readonly string[]): string[] {
  const { category, action, actorId, traceId } = query
  const isAny = (wanted: readonly string[], value: string) =>
    wanted.length === 0 || wanted.includes(value)
  const matching = all.filter(
    (event) =>
      workspaceIds.includes(event.workspaceId) &&
      isAny(category, event.category) &&
      isAny(action, event.action) &&
      isAny(actorId, event.actor.id) &&
      isAny(traceId, event.traceId) &&
      query.from.every((time) => event.timestamp >= time) &&
      query.to.every((time) => event.timestamp < time) &&
      query.receivedFrom.every((time) => event.receivedAt >= time) &&
      query.receivedTo.every((time) => event.receivedAt < time) &&
      query.seqFrom.every((seq) => event.seq >= seq) &&
      query.seqTo.every((seq) => event.seq <= seq),
  )
  return idsOf(query.order[0] === 'asc' ? matching.toReversed() : matching)
}

const parametersOf = (query: Query): Parameters =>
  Object.entries(query).flatMap(([name, values]) =>
    values.map((value): Parameters[number] => [name, value]),
  )

test('any combination of lists, ranges and orders returns exactly the matching events, in order', async () => {
  const anyLimit = fc.integer({ min: 30, max: 200 })
  await fc.assert(
    fc.asyncProperty(anyQuery, anyLimit, async (query, limit) => {
      const parameters: Parameters = [...parametersOf(query), ['limit', limit]]
      assert.deepEqual(idsOf(await walk(one.workspaceKey, parameters)), expected(query, [one.id]))
      const named: Parameters = [...parameters, ['workspaceId', two.id]]
      assert.deepEqual(idsOf(await walk(tenant.companyKey, named)), expected(query, [two.id]))
      if (query.seqFrom.length + query.seqTo.length > 0) return
      const both = await walk(tenant.companyKey, parameters)
      assert.deepEqual(idsOf(both), expected(query, [one.id, two.id]))
    }),
    { numRuns: 60, endOnFailure: true },
  )
})

test('a repeated value counts once, and up to 20 values are accepted', async () => {
  const once = await walk(one.workspaceKey, [['category', 'auth']])
  const twice: Parameters = [
    ['category', 'auth'],
    ['category', 'auth'],
  ]
  assert.deepEqual(await walk(one.workspaceKey, twice), once)
  const many = Array.from({ length: LISTED_VALUES_MAX }, (_, nth): Parameters[number] => [
    'category',
    CATEGORIES[nth] ?? `other ${nth}`,
  ])
  assert.equal((await walk(one.workspaceKey, many)).length, EVENTS)
})

test('receivedFrom and both sequence numbers are inclusive, receivedTo is exclusive', async () => {
  const received: Parameters = [
    ['receivedFrom', iso(START_MS)],
    ['receivedTo', iso(START_MS + 60_000)],
  ]
  assert.equal((await walk(one.workspaceKey, received)).length, 100)
  const seqs: Parameters = [
    ['seqFrom', 100],
    ['seqTo', 102],
  ]
  const run = await walk(one.workspaceKey, seqs)
  assert.deepEqual(
    run.map(({ seq }) => seq).toSorted((a, b) => a - b),
    [100, 101, 102],
  )
})

test('a trace id is found in either case', async () => {
  const found = await walk(one.workspaceKey, [['traceId', String(TRACES[1]).toUpperCase()]])
  assert.equal(found.length, 300)
})

test('a company key needs a workspaceId to name sequence numbers', async () => {
  for (const name of ['seqFrom', 'seqTo']) {
    const path = pathOf([[name, 1]])
    const { status, json } = await annals.call('GET', path, { key: tenant.companyKey })
    assert.deepEqual([status, json.code], [400, 'invalid_request'])
    const message = 'is required with seqFrom and seqTo'
    assert.deepEqual(json.details, [{ path: 'workspaceId', message }])
  }
})

test('a cursor is bound to the order and to every condition, but not to the order of the values', async () => {
  const bound: Parameters = [
    ['category', 'auth'],
    ['category', 'billing'],
    ['action', 'create'],
    ['action', 'delete'],
    ['order', 'asc'],
    ['receivedFrom', iso(START_MS)],
    ['receivedTo', iso(START_MS + 3_600_000)],
    ['traceId', String(TRACES[0])],
    ['seqFrom', 1],
    ['seqTo', EVENTS],
  ]
  const key = one.workspaceKey
  const { json } = await annals.call('GET', pathOf([...bound, ['limit', 1]]), { key })
  assert(json.nextCursor)
  const next = async (parameters: Parameters) => {
    const path = pathOf([...parameters, ['cursor', json.nextCursor]])
    const response = await annals.call('GET', path, { key })
    return [response.status, response.json.code]
  }
  assert.deepEqual(await next(bound), [200, undefined])
  assert.deepEqual(await next(bound.toReversed()), [200, undefined])
  for (const [index] of bound.entries()) {
    assert.deepEqual(await next(bound.toSpliced(index, 1)), [400, 'invalid_cursor'])
  }
})
