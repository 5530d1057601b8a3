import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Annals } from '../../../../../sdk/src/annals.ts'
import { readPendingIo } from '../../../platform/time/deadline.ts'
import { MissedDeliveries } from './missed-deliveries.ts'

/** A service that lists no deliveries, and the number of its lists. */
function startSession(t: TestContext, signal: AbortSignal) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const counted = { lists: 0 }
  const annals = new Annals({
    baseUrl: 'http://annals.invalid',
    apiKey: 'annals_x',
    fetch: async () => {
      counted.lists += 1
      return Response.json({ data: [], nextCursor: null })
    },
  })
  const webhookId = '01a1e58b-9067-7965-9627-d1348011a791'
  const session = { annals, webhookId, isNew: true, signal, note: () => {}, show: async () => {} }
  const missed = new MissedDeliveries(session)
  t.after(() => missed[Symbol.dispose]())
  const pass = async (seconds: number) => {
    t.mock.timers.tick(seconds * 1_000)
    for (let round = 0; round < 10; round += 1) await readPendingIo()
  }
  return { missed, counted, pass }
}

test('a gap that stays open is looked up after increasing delays, and a new one soon', async (t) => {
  const { missed, counted, pass } = startSession(t, new AbortController().signal)
  missed.add(2)
  const counts: number[] = []
  for (const seconds of [3, 5, 1, 12, 24, 48, 59, 1, 59, 1]) {
    await pass(seconds)
    counts.push(counted.lists)
  }
  assert.deepEqual(counts, [1, 1, 2, 3, 4, 5, 5, 6, 6, 7])
  missed.add(4)
  await pass(3)
  assert.equal(counted.lists, 8)
})

test('nothing is looked up after the session ended', async (t) => {
  const controller = new AbortController()
  const { missed, counted, pass } = startSession(t, controller.signal)
  controller.abort()
  missed.add(2)
  await pass(60)
  assert.equal(counted.lists, 0)
})

test('accepts only numbers that a delivery can have', (t) => {
  const { missed } = startSession(t, new AbortController().signal)
  missed.add(1)
  for (const sequence of [1, 2, 1_000_001]) assert(missed.accepts(sequence), String(sequence))
  for (const sequence of [Number.NaN, 0, -1, 1.5, 1_000_002, 2 ** 53]) {
    assert(!missed.accepts(sequence), String(sequence))
  }
})
