import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  Annals,
  AnnalsApiError,
  AnnalsNetworkError,
  type AnnalsOptions,
  AnnalsTimeoutError,
} from '../../../sdk/src/index.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import { manualClock } from '../harness/timing/clock.ts'

const { clock, advance } = manualClock()
const service = await startTestApp({ clock })
after(() => service[Symbol.asyncDispose]())

const EVENT = { category: 'auth', action: 'user.login', actor: { id: 'u-17' } }
const events = (count: number) =>
  Array.from({ length: count }, (_, nth) => ({ ...EVENT, action: `a${nth}` }))

/** Waits by moving the clock of the service, and notes how long. */
const waits: number[] = []
const sleep = async (ms: number) => {
  waits.push(ms)
  advance(ms)
}

async function countStored(key: string): Promise<number> {
  // Refills the bucket of the key.
  advance(2_000)
  return (await walkEvents(service, key)).length
}

async function connect(options: Partial<AnnalsOptions> = {}, plan: 'FREE' | 'PRO' = 'PRO') {
  const company = await service.createCompany({ plan })
  waits.length = 0
  const shared = { baseUrl: service.url, clock, sleep, random: () => 0.5, ...options }
  const annals = new Annals({ apiKey: company.workspaceKey, ...shared })
  const asCompany = new Annals({ apiKey: company.companyKey, ...shared })
  return { annals, asCompany, company, key: company.workspaceKey }
}

/** Loses the response of the first requests, after the service has handled them. */
function losingResponses(count: number): typeof fetch {
  let lost = 0
  return async (...args) => {
    const response = await fetch(...args)
    if (args[1]?.method !== 'POST' || lost === count) return response
    lost += 1
    await response.arrayBuffer()
    throw new TypeError('fetch failed')
  }
}

test('an event that is created can be read, listed and followed', async () => {
  const { annals, asCompany, company } = await connect()
  const created = await annals.events.create(EVENT)
  assert.deepEqual(created, { id: created.id, isReplay: false, isMismatch: false })
  const event = await annals.events.get(created.id)
  assert.equal(event.action, 'user.login')
  assert.deepEqual(await annals.events.list({ category: ['auth'] }).take(9), [event])
  assert.deepEqual(await annals.events.list({ category: ['other'] }).take(9), [])
  for (const feed of [
    annals.events.feed(),
    asCompany.events.feed({ workspaceId: company.workspace.id }),
  ]) {
    assert.deepEqual(await Array.fromAsync(feed), [event])
  }
  await assert.rejects(Array.fromAsync(asCompany.events.feed()), { code: 'workspace_required' })
})

test('an idempotency key of the caller is kept, and a replay is reported', async () => {
  const { annals } = await connect()
  const first = await annals.events.create({ ...EVENT, idempotencyKey: 'k' })
  const again = await annals.events.create({ ...EVENT, idempotencyKey: 'k' })
  assert.deepEqual(again, { id: first.id, isReplay: true, isMismatch: false })
  const other = await annals.events.create({ ...EVENT, action: 'other', idempotencyKey: 'k' })
  assert.deepEqual(other, { id: first.id, isReplay: true, isMismatch: true })
})

test('a lost response never stores an event or a batch twice', async () => {
  const { annals, key } = await connect({ fetch: losingResponses(2) })
  const { id } = await annals.events.create(EVENT)
  assert.equal(await countStored(key), 1)
  const batching = await connect({ fetch: losingResponses(3) })
  const results = await batching.annals.events.batch(events(3))
  assert.deepEqual(
    results.map(({ status }) => status),
    [200, 200, 200],
  )
  assert.equal(await countStored(batching.key), 3)
  assert.equal((await annals.events.get(id)).id, id)
})

test('a request that could create a second object is not repeated when its response is lost', async () => {
  const { annals } = await connect({ fetch: losingResponses(1) })
  await assert.rejects(
    annals.exports.create({ source: 'HOT', format: 'JSONL' }),
    AnnalsNetworkError,
  )
  assert.deepEqual(waits, [])
  assert.equal((await annals.exports.list().take(9)).length, 1)
})

test('a rate limit delays a call as long as the service asks, and then the call succeeds', async () => {
  const { annals, key } = await connect({}, 'FREE')
  await annals.events.batch(events(50))
  await annals.events.batch(events(50))
  assert.equal(await countStored(key), 100)
  assert.equal(waits.length, 1)
  assert(
    waits.every((ms) => ms >= 1_000 && ms < 2_000),
    waits.join(),
  )
})

test('a rate limit that asks for too long a wait is an error at once', async () => {
  const { annals } = await connect({ retryAfterMsMax: 999 }, 'FREE')
  await annals.events.batch(events(50))
  await assert.rejects(annals.events.batch(events(50)), (error: unknown) => {
    assert(error instanceof AnnalsApiError)
    assert.deepEqual([error.code, error.status, error.retryAfterMs], ['rate_limited', 429, 1_000])
    return true
  })
  assert.deepEqual(waits, [])
})

test('an error has the code, the status, the trace ID and the problems that the service sent', async () => {
  const { annals, asCompany } = await connect()
  await assert.rejects(annals.events.create({ category: '', action: 'a' }), (error: unknown) => {
    assert(error instanceof AnnalsApiError)
    assert.deepEqual([error.code, error.status], ['invalid_request', 400])
    assert.match(error.traceId ?? '', /^[0-9a-f]{32}$/)
    assert.equal(error.details[0]?.path, '/category')
    return true
  })
  const missing = annals.events.get('018f0000-0000-7000-8000-00000000c001')
  await assert.rejects(missing, { code: 'not_found', status: 404 })
  await assert.rejects(asCompany.events.create(EVENT), { code: 'insufficient_scope', status: 403 })
  const wrong = new Annals({ apiKey: 'annals_wrong', baseUrl: service.url })
  await assert.rejects(wrong.keys.status(), { code: 'invalid_api_key', status: 401 })
  const lost = new Annals({ apiKey: 'k', baseUrl: 'http://127.0.0.1:1', retriesMax: 0 })
  await assert.rejects(lost.keys.status(), AnnalsNetworkError)
  const page = new Annals({ apiKey: 'k', baseUrl: `${service.url}/missing` })
  await assert.rejects(page.keys.status(), { status: 404 })
})

test('each event of a batch is stored or refused on its own', async () => {
  const { annals, key } = await connect()
  const results = await annals.events.batch([EVENT, { category: '', action: 'a' }, EVENT])
  assert.deepEqual(
    results.map(({ status }) => status),
    [201, 400, 201],
  )
  assert(results[1] && 'code' in results[1] && results[1].code === 'invalid_request')
  assert.equal(await countStored(key), 2)
})

test('a list returns every event once, over pages of any size', async () => {
  const { annals } = await connect()
  await annals.events.batch(events(25))
  for (const limit of [1, 10, 25, 200]) {
    const actions = new Set<string>()
    let pages = 0
    for await (const { data } of annals.events.list({ limit }).pages()) {
      pages += 1
      for (const { action } of data) actions.add(action)
    }
    assert.equal(actions.size, 25)
    assert(pages >= 25 / limit)
  }
  assert.equal((await annals.events.list({ limit: 10 }).take(12)).length, 12)
})

test('metadata filters name the path and its values', async () => {
  const { annals } = await connect()
  await annals.events.create({ ...EVENT, metadata: { request: { id: 'r1' } } })
  await annals.events.create({ ...EVENT, metadata: { request: { id: 'r2' } } })
  const filtered = annals.events.list({ metadata: { 'request.id': ['r2', 'r3'] } })
  assert.deepEqual(
    (await filtered.take(9)).map(({ metadata }) => metadata),
    [{ request: { id: 'r2' } }],
  )
})

test('a followed feed waits for new events and continues where it was', async () => {
  const { annals } = await connect()
  await annals.events.batch(events(3))
  const feed = annals.events.feed({ follow: true, limit: 2, after: 1 })
  const seen: number[] = []
  for await (const { data, next } of feed.pages()) {
    seen.push(...data.map(({ seq }) => seq))
    assert.equal(next, seen.at(-1))
    if (next === 3) await annals.events.create(EVENT)
    if (next === 4) break
  }
  assert.deepEqual(seen, [2, 3, 4])
})

test('a signal ends a call that waits, with the reason of the signal', async () => {
  const { annals } = await connect()
  const controller = new AbortController()
  const waiting = Array.fromAsync(annals.events.feed({ follow: true, signal: controller.signal }))
  controller.abort(new Error('shutting down'))
  await assert.rejects(waiting, /shutting down/)
  await assert.rejects(annals.keys.status({ signal: controller.signal }), /shutting down/)
})

test('a call that takes too long is a timeout, and is repeated if that is safe', async () => {
  let calls = 0
  const hanging: typeof fetch = (_url, options) =>
    new Promise((_, reject) => {
      calls += 1
      options?.signal?.addEventListener('abort', () => reject(options.signal?.reason))
    })
  const { annals } = await connect({ fetch: hanging, timeoutMs: 10, retriesMax: 2 })
  await assert.rejects(annals.keys.status(), AnnalsTimeoutError)
  assert.equal(calls, 3)
  calls = 0
  await assert.rejects(annals.exports.rerun('x'), AnnalsTimeoutError)
  assert.equal(calls, 1)
})
