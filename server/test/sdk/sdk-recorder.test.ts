import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Annals, type EventInput, type RefusedEvent } from '../../../sdk/src/index.ts'
import { type TestApp, startTestApp } from '../harness/app/start-app.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import { eventually } from '../harness/timing/eventually.ts'

const service: TestApp = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => service[Symbol.asyncDispose]())

const event = (nth: number): EventInput => ({ category: 'shop', action: `a${nth}` })
const actions = (count: number) => Array.from({ length: count }, (_, nth) => `a${nth}`)

async function connect(options: { fetch?: typeof fetch } = {}) {
  const { workspaceKey: key } = await service.createCompany()
  // Waits are skipped, but the requests between them are real.
  const sleep = async () => await new Promise<void>((resolve) => setImmediate(resolve))
  const annals = new Annals({ apiKey: key, baseUrl: service.url, sleep, ...options })
  const stored = async () => {
    const events = await walkEvents(service, key)
    return events.toSorted((a, b) => a.seq - b.seq).map(({ action }) => action)
  }
  return { annals, key, stored }
}

function eventsIn(body: unknown): number {
  const { events }: { events: unknown[] } = JSON.parse(typeof body === 'string' ? body : '')
  return events.length
}

/** Fails or loses requests as the test says, and counts them. */
function unreliable(fails: (nth: number) => 'before' | 'after' | null) {
  const sent: number[] = []
  const send: typeof fetch = async (url, options) => {
    sent.push(eventsIn(options?.body))
    const failure = fails(sent.length)
    if (failure === 'before') throw new TypeError('fetch failed')
    const response = await fetch(url, options)
    if (failure === null) return response
    await response.arrayBuffer()
    throw new TypeError('fetch failed')
  }
  return { sent, send }
}

test('recorded events are stored in order, in full batches', async () => {
  const { sent, send } = unreliable(() => null)
  const { annals, stored } = await connect({ fetch: send })
  await using recorder = annals.recorder({ flushMs: 60_000, maxBatch: 100, concurrency: 1 })
  for (let nth = 0; nth < 250; nth += 1) assert(recorder.record(event(nth)))
  await recorder.flush()
  assert.deepEqual(await stored(), actions(250))
  assert.deepEqual(sent, [100, 100, 50])
  const stats = { queued: 0, stored: 250, refused: 0, dropped: 0, retries: 0 }
  assert.deepEqual(recorder.stats, stats)
})

test('an event is sent after flushMs without any further call', async () => {
  const { annals, stored } = await connect()
  await using recorder = annals.recorder({ flushMs: 5 })
  recorder.record(event(0))
  await eventually(() => assert.equal(recorder.stats.stored, 1))
  assert.deepEqual(await stored(), ['a0'])
})

test('requests that fail or lose their response store every event once', async () => {
  const { send } = unreliable((nth) => [null, 'before', 'after'][nth % 3] as 'before')
  const { annals, stored } = await connect({ fetch: send })
  const errors: unknown[] = []
  await using recorder = annals.recorder({ maxBatch: 10, onError: (error) => errors.push(error) })
  for (let nth = 0; nth < 100; nth += 1) recorder.record(event(nth))
  await recorder.flush()
  const found = await stored()
  assert.equal(found.length, 100)
  assert.deepEqual(new Set(found), new Set(actions(100)))
  assert.equal(recorder.stats.stored, 100)
  assert(recorder.stats.retries > 0)
  assert.equal(errors.length, recorder.stats.retries)
})

test('an event whose key and time are undefined is stored once, although its response was lost', async () => {
  const { send } = unreliable((nth) => (nth === 1 ? 'after' : null))
  const { annals, stored } = await connect({ fetch: send })
  await using recorder = annals.recorder()
  // Most programs don't set exactOptionalPropertyTypes.
  const absent: object = { idempotencyKey: undefined, timestamp: undefined }
  recorder.record({ ...event(0), ...absent })
  await recorder.recordOrWait({ ...event(1), ...absent })
  await recorder.flush()
  assert.equal(recorder.stats.retries, 1)
  assert.deepEqual(await stored(), ['a0', 'a1'])
})

test('a caller does not wait for room that can never be there', async () => {
  const { annals } = await connect()
  const recorder = annals.recorder({ maxQueue: 0 })
  await assert.rejects(recorder.recordOrWait(event(0)), { code: 'queue_full' })
  await recorder.close()
})

test('flushing a closed recorder that has unsent events fails', async () => {
  const { send } = unreliable(() => 'before')
  const { annals } = await connect({ fetch: send })
  const recorder = annals.recorder({ closeMs: 1 })
  recorder.record(event(0))
  await recorder.close()
  await assert.rejects(recorder.flush(), { code: 'recorder_closed' })
})

test('an invalid event is reported once and never again, and the others are stored', async () => {
  const { sent, send } = unreliable(() => null)
  const { annals, stored } = await connect({ fetch: send })
  const refused: RefusedEvent[] = []
  await using recorder = annals.recorder({ onRefused: (event) => refused.push(event) })
  recorder.record(event(0))
  recorder.record({ category: '', action: 'invalid' })
  recorder.record({ ...event(9), metadata: { text: '\ud800' } })
  recorder.record(event(1))
  await recorder.flush()
  assert.deepEqual(await stored(), ['a0', 'a1'])
  const found = refused.map(({ event, code }) => [event?.action ?? '', code] as const)
  assert.deepEqual(Object.fromEntries(found), { invalid: 'invalid_request', a9: 'invalid_request' })
  assert.equal(
    refused.find(({ code }) => code === 'invalid_request')?.details[0]?.path,
    '/category',
  )
  assert.equal(recorder.stats.refused, 2)
  const requests = sent.length
  await recorder.flush()
  assert.equal(sent.length, requests)
})

test('an event that is not JSON or too large is refused without a request', async () => {
  const { sent, send } = unreliable(() => null)
  const { annals } = await connect({ fetch: send })
  const refused: string[] = []
  await using recorder = annals.recorder({ onRefused: ({ code }) => refused.push(code) })
  assert.equal(recorder.record({ ...event(0), metadata: { n: 1n } }), false)
  assert.equal(recorder.record({ ...event(0), metadata: { text: 'x'.repeat(300_000) } }), false)
  await recorder.flush()
  assert.deepEqual(refused, ['invalid_json', 'payload_too_large'])
  assert.deepEqual(sent, [])
})

test('a full queue drops events with a counter, or makes callers wait', async () => {
  let isDown = true
  const { send } = unreliable(() => (isDown ? 'before' : null))
  const { annals, stored } = await connect({ fetch: send })
  const dropped: EventInput[] = []
  const onDropped = (event: EventInput) => dropped.push(event)
  await using recorder = annals.recorder({ maxQueue: 3, onDropped })
  assert.deepEqual(
    [0, 1, 2, 3].map((nth) => recorder.record(event(nth))),
    [true, true, true, false],
  )
  assert.deepEqual(dropped, [event(3)])
  assert.equal(recorder.stats.dropped, 1)
  let isWaiting = true
  const waiting = recorder.recordOrWait(event(4)).then(() => (isWaiting = false))
  await eventually(() => assert(recorder.stats.retries > 0))
  assert(isWaiting)
  isDown = false
  await waiting
  await recorder.flush()
  assert.deepEqual(await stored(), ['a0', 'a1', 'a2', 'a4'])
  assert.equal(recorder.stats.dropped, 1)
})

test('closing sends what is queued, and reports what could not be sent', async () => {
  const healthy = await connect()
  const recorder = healthy.annals.recorder({ flushMs: 60_000 })
  recorder.record(event(0))
  assert.equal((await recorder.close()).stored, 1)
  assert.deepEqual(await healthy.stored(), ['a0'])
  assert.equal(recorder.record(event(1)), false)
  await assert.rejects(recorder.recordOrWait(event(1)), { code: 'recorder_closed' })

  const { send } = unreliable(() => 'before')
  const down = await connect({ fetch: send })
  const codes: unknown[] = []
  const lost = down.annals.recorder({
    closeMs: 1,
    onError: (error) => codes.push(error instanceof Error && 'code' in error ? error.code : error),
  })
  lost.record(event(0))
  const flushing = lost.flush()
  await Promise.all([
    assert.rejects(flushing, { code: 'recorder_closed' }),
    assert.doesNotReject(lost.close()),
  ])
  assert.deepEqual(lost.stats, { ...lost.stats, queued: 1, stored: 0, dropped: 1 })
  assert.equal(codes.at(-1), 'events_dropped')
})

test('a callback that throws does not stop the recorder', async () => {
  const { annals, stored } = await connect()
  const fail = () => {
    throw new Error('a bug of the caller')
  }
  await using recorder = annals.recorder({ onRefused: fail, onDropped: fail, maxQueue: 2 })
  recorder.record({ category: '', action: 'invalid' })
  recorder.record(event(0))
  recorder.record(event(1))
  await recorder.flush()
  assert.deepEqual(await stored(), ['a0'])
})
