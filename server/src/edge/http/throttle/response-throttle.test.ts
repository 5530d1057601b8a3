import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { manualClock } from '../../../../test/harness/timing/clock.ts'
import { rounds } from '../../../../test/harness/timing/fault-rounds.ts'
import { within } from '../../../../test/harness/timing/eventually.ts'
import { CallerDebts } from './caller-debts.ts'
import {
  ResponseThrottle,
  CHECK_RATE,
  PAGE_RATE,
  PIPELINED_MAX,
  REFUSAL_RATE,
} from './response-throttle.ts'

const BURST = 100

/** Each response has its own connection unless `socket` is given. */
const newResponse = (socket = new Socket()) => new ServerResponse(new IncomingMessage(socket))

/** Sends a caller `count` responses at once and ends the delays. Returns how many were not delayed. */
function countImmediate(
  throttle: ResponseThrottle,
  caller: string,
  count: number,
  { isAlone = true } = {},
): number {
  let immediate = 0
  const ends = Array.from({ length: count }, () =>
    throttle.hold(caller, newResponse(), () => (immediate += 1)),
  )
  const result = immediate
  for (const end of ends) end()
  assert.equal(immediate, count, 'each gets one response')
  if (isAlone) assert.equal(throttle.delayedCount, 0)
  return result
}

test('delays rejections beyond 100 per second for one caller only', () => {
  const { clock, advance } = manualClock(0)
  const throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  assert.equal(countImmediate(throttle, 'busy', 150), BURST)
  assert.equal(countImmediate(throttle, 'other', 1), 1)
  advance(1_500)
  assert.equal(countImmediate(throttle, 'busy', 150), BURST)
})

test('never delays a caller with 100 rejections per second', () => {
  const { clock, advance } = manualClock(0)
  const throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  for (let sent = 0; sent < 1_000; sent += 1) {
    assert.equal(countImmediate(throttle, 'steady', 1), 1, `refusal ${sent}`)
    advance(10)
  }
})

test('lowers the rate of each caller in a flood from many, without delaying a single rejection', () => {
  const { clock } = manualClock(0)
  const throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  for (let network = 0; network < 100; network += 1) {
    countImmediate(throttle, `network ${network}`, 10)
  }
  assert.equal(countImmediate(throttle, 'one of many', 50), 10)
  assert.equal(countImmediate(throttle, 'innocent', 1), 1)
})

test('limits a flood from any number of networks to about the rate of the node', () => {
  for (const [rate, networks] of [
    [REFUSAL_RATE, 100],
    [REFUSAL_RATE, 600],
    [REFUSAL_RATE, rounds(1_500, 3_000)],
    [PAGE_RATE, rounds(1_500, 3_000)],
  ] as const) {
    const { clock, advance } = manualClock(0)
    const debts = new CallerDebts(rate, clock)
    // Each sends its next request when it gets the response to the last one, but at most ten per second.
    const nextAtMs = Array.from({ length: networks }, (_, nth) => nth % 100)
    let responses = 0
    for (let nowMs = 0; nowMs < 60_000; nowMs += 10) {
      for (const [network, atMs] of nextAtMs.entries()) {
        if (atMs > nowMs) continue
        nextAtMs[network] = nowMs + Math.max(100, debts.charge(`network ${network}`, 1))
        if (nowMs >= 30_000) responses += 1
      }
      advance(10)
    }
    assert(
      responses / 30 < 1.5 * rate.nodePerSecond,
      `${responses / 30} responses per second to ${networks} networks`,
    )
    assert.equal(debts.charge('innocent', 1), 0)
    // The rate grows again when the flood is over.
    advance(30_000)
    for (let second = 0; second < 20; second += 1) {
      assert.equal(debts.charge('busy', 20), 0)
      advance(1_000)
    }
    assert.equal(debts.charge('busy', 100), 0)
  }
})

test('one caller that doesn’t wait for its responses lowers no other caller’s rate', () => {
  const { clock, advance } = manualClock(0)
  const debts = new CallerDebts(PAGE_RATE, clock)
  for (let nowMs = 0; nowMs < 20_000; nowMs += 10) {
    for (let nth = 0; nth < 15; nth += 1) debts.charge('busy', 1)
    advance(10)
  }
  for (let second = 0; second < 10; second += 1) {
    for (let file = 0; file < 250; file += 1) assert.equal(debts.charge('browser', 1), 0)
    advance(1_000)
  }
})

test('closes only connections whose pipelined requests would have too many delayed responses', () => {
  const { clock } = manualClock(0)
  using throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  countImmediate(throttle, 'busy', BURST)
  const hold = (socket: Socket) => throttle.hold('busy', newResponse(socket), () => {})
  const flood = Array.from({ length: PIPELINED_MAX + 2 }, () => new Socket())
  for (const socket of [...flood, ...flood]) hold(socket)
  assert.deepEqual(
    flood.map(({ destroyed }) => destroyed),
    flood.map((_, nth) => nth >= PIPELINED_MAX),
  )
  const other = new Socket()
  hold(other)
  assert.equal(other.destroyed, false)
})

test('limits a flood to its rate on any number of connections', () => {
  const { clock, advance } = manualClock(0)
  const throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  countImmediate(throttle, 'busy', BURST + 300)
  advance(2_900)
  assert.equal(countImmediate(throttle, 'busy', 1), 0)
  advance(200)
  assert.equal(countImmediate(throttle, 'busy', 1), 1)
})

test('delays health checks by at most a second', () => {
  const { clock, advance } = manualClock(0)
  const throttle = new ResponseThrottle(CHECK_RATE, clock)
  countImmediate(throttle, 'balancer', 5_000)
  advance(1_010)
  assert.equal(countImmediate(throttle, 'balancer', 1), 1)
})

test('frees the slot of a client that disconnects, and ends its delay only once', async () => {
  const { clock } = manualClock(0)
  const throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  countImmediate(throttle, 'busy', BURST)
  const client = newResponse()
  let responses = 0
  const release = throttle.hold('busy', client, () => (responses += 1))
  assert.deepEqual([throttle.delayedCount, responses], [1, 0])
  client.emit('close')
  await new Promise(setImmediate)
  release()
  assert.deepEqual([throttle.delayedCount, responses, client.listenerCount('close')], [0, 1, 0])
})

test('sends a delayed rejection without further requests', async () => {
  const throttle = new ResponseThrottle(REFUSAL_RATE)
  countImmediate(throttle, 'busy', BURST)
  const sent = new Promise<void>((resolve) => throttle.hold('busy', newResponse(), resolve))
  await within(1_500, sent)
  assert.equal(throttle.delayedCount, 0)
})

test('sends a client that loads pages and checks health 300 responses at once, then 300 per second', () => {
  const { clock, advance } = manualClock(0)
  const throttle = new ResponseThrottle(PAGE_RATE, clock)
  assert.equal(countImmediate(throttle, 'browsers', 400), 300)
  for (let second = 0; second < 5; second += 1) {
    advance(1_000)
    countImmediate(throttle, 'browsers', 150)
  }
  assert.equal(countImmediate(throttle, 'browsers', 100), 100)
})

test('never delays ten health checks per second, even while many others flood the node', () => {
  const { clock, advance } = manualClock(0)
  const throttle = new ResponseThrottle(CHECK_RATE, clock)
  for (let check = 0; check < 50; check += 1) {
    for (let network = 0; network < 20; network += 1) countImmediate(throttle, `${network}`, 10)
    assert.equal(countImmediate(throttle, 'balancer', 1), 1, `check ${check}`)
    advance(100)
  }
})

test('shutdown sends all delayed responses, and delays none after that', () => {
  const { clock } = manualClock(0)
  const throttle = new ResponseThrottle(REFUSAL_RATE, clock)
  countImmediate(throttle, 'busy', BURST)
  let responses = 0
  for (let nth = 0; nth < 5; nth += 1) {
    throttle.hold('busy', newResponse(), () => (responses += 1))
  }
  assert.deepEqual([throttle.delayedCount, responses], [5, 0])
  throttle[Symbol.dispose]()
  throttle.hold('busy', newResponse(), () => (responses += 1))
  assert.deepEqual([throttle.delayedCount, responses], [0, 6])
})
