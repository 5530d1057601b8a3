import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { handClock } from '../../test/harness/clock.ts'
import { ANONYMOUS_RATE, AnswerThrottle, REFUSAL_RATE } from './answer-throttle.ts'

const BURST = 100

/** Answers a caller `count` times at once and disconnects those that wait. Returns how many did not. */
function countImmediate(throttle: AnswerThrottle, caller: string, count: number): number {
  const clients = Array.from({ length: count }, () => new EventEmitter())
  let immediate = 0
  for (const client of clients) throttle.hold(caller, client, () => (immediate += 1))
  const result = immediate
  for (const client of clients) client.emit('close')
  assert.equal(immediate, count, 'each is answered once')
  assert.equal(throttle.held, 0)
  return result
}

test('delays refusals beyond 100 per second of one caller, and of no other', () => {
  const { clock, advance } = handClock(0)
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 1_000, clock })
  assert.equal(countImmediate(throttle, 'busy', 150), BURST)
  assert.equal(countImmediate(throttle, 'other', 1), 1)
  advance(1_500)
  assert.equal(countImmediate(throttle, 'busy', 150), BURST)
})

test('never delays a caller with 100 refusals per second', () => {
  const { clock, advance } = handClock(0)
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 1_000, clock })
  for (let sent = 0; sent < 1_000; sent += 1) {
    assert.equal(countImmediate(throttle, 'steady', 1), 1, `refusal ${sent}`)
    advance(10)
  }
})

test('a flood from many callers gets a lower rate each, and a single refusal is not delayed', () => {
  const { clock } = handClock(0)
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 1_000, clock })
  for (let network = 0; network < 100; network += 1) {
    countImmediate(throttle, `network ${network}`, 10)
  }
  assert.equal(countImmediate(throttle, 'one of many', 50), 10)
  assert.equal(countImmediate(throttle, 'innocent', 1), 1)
})

test('answers immediately when too many refusals wait', () => {
  const { clock } = handClock(0)
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 5, clock })
  assert.equal(countImmediate(throttle, 'busy', BURST + 5 + 20), BURST + 20)
})

test('a client that disconnects frees its place, and ends its delay only once', () => {
  const { clock } = handClock(0)
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 1, clock })
  countImmediate(throttle, 'busy', BURST)
  const client = new EventEmitter()
  let answers = 0
  const release = throttle.hold('busy', client, () => (answers += 1))
  assert.deepEqual([throttle.held, answers], [1, 0])
  client.emit('close')
  release()
  assert.deepEqual([throttle.held, answers, client.listenerCount('close')], [0, 1, 0])
})

test('answers a delayed refusal by itself', async () => {
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 1 })
  countImmediate(throttle, 'busy', BURST)
  const startedMs = performance.now()
  await new Promise<void>((resolve) => throttle.hold('busy', new EventEmitter(), resolve))
  assert(performance.now() - startedMs < 1_500)
  assert.equal(throttle.held, 0)
})

test('a client that loads pages and checks health gets 300 answers at once, and then 300 per second', () => {
  const { clock, advance } = handClock(0)
  const throttle = new AnswerThrottle({ rate: ANONYMOUS_RATE, heldMax: 1_000, clock })
  assert.equal(countImmediate(throttle, 'browsers', 400), 300)
  for (let second = 0; second < 5; second += 1) {
    advance(1_000)
    countImmediate(throttle, 'browsers', 150)
  }
  assert.equal(countImmediate(throttle, 'browsers', 100), 100)
})

test('never delays ten health checks per second, even while many others flood the node', () => {
  const { clock, advance } = handClock(0)
  const throttle = new AnswerThrottle({ rate: ANONYMOUS_RATE, heldMax: 10_000, clock })
  for (let check = 0; check < 50; check += 1) {
    for (let network = 0; network < 20; network += 1) countImmediate(throttle, `${network}`, 50)
    assert.equal(countImmediate(throttle, 'balancer', 1), 1, `check ${check}`)
    advance(100)
  }
})

test('a stop sends every answer that waits, and delays none after it', () => {
  const { clock } = handClock(0)
  const throttle = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax: 10, clock })
  countImmediate(throttle, 'busy', BURST)
  let answers = 0
  for (let nth = 0; nth < 5; nth += 1) {
    throttle.hold('busy', new EventEmitter(), () => (answers += 1))
  }
  assert.deepEqual([throttle.held, answers], [5, 0])
  throttle[Symbol.dispose]()
  throttle.hold('busy', new EventEmitter(), () => (answers += 1))
  assert.deepEqual([throttle.held, answers], [0, 6])
})
