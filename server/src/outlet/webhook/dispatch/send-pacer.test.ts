import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CompanyId, newId } from '../../../platform/id.ts'
import { type PacerTimers, SendPacer } from './send-pacer.ts'

const SEND_MS = 0.25
/** The total cost of a send. See `COST_RATIO`. */
const COST_MS = 1.5

/** Time passes only while an item is sent or the pacer waits. */
class VirtualTime implements PacerTimers {
  ms = 0
  turns = 0
  readonly #timers: { atMs: number; run: () => void }[] = []
  readonly #nextTurn: (() => void)[] = []

  nowMs = (): number => this.ms
  after = (delayMs: number, run: () => void): void => {
    this.#timers.push({ atMs: this.ms + delayMs, run })
  }
  inNextTurn = (run: () => void): void => {
    this.#nextTurn.push(run)
  }

  /** Runs the event loop until `isOver`, or until nothing is left to run. */
  runUntil(isOver: () => boolean): void {
    while (!isOver()) {
      const turn = this.#nextTurn.splice(0)
      if (turn.length === 0) {
        const next = this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0]
        if (!next) return
        this.#timers.splice(this.#timers.indexOf(next), 1)
        this.ms = Math.max(this.ms, next.atMs)
        turn.push(next.run)
      }
      this.turns += 1
      for (const run of turn) run()
    }
  }
}

function setUp({ isContended = () => true }: { isContended?: () => boolean } = {}) {
  const time = new VirtualTime()
  const sent: CompanyId[] = []
  const send = (companyId: CompanyId): void => {
    sent.push(companyId)
    time.ms += SEND_MS
  }
  const pacer = new SendPacer<CompanyId>({ send, isContended, timers: time })
  const addMany = (companyId: CompanyId, count: number): void => {
    for (let added = 0; added < count; added += 1) pacer.add(companyId, companyId)
  }
  return {
    time,
    sent,
    pacer,
    addMany,
    waitFor: (count: number) => time.runUntil(() => sent.length >= count),
  }
}

function assertBetween(actual: number, min: number, max: number): void {
  assert(actual >= min && actual <= max, `${actual} is not between ${min} and ${max}`)
}

const company = () => newId<'company'>()

test('deliveries of one company get a quarter of the thread while another is active', () => {
  const { time, sent, addMany, waitFor } = setUp()
  addMany(company(), 6_000)
  waitFor(6_000)
  assert.equal(sent.length, 6_000)
  assertBetween((6_000 * COST_MS) / time.ms, 0.22, 0.27)
})

test('deliveries of all companies together get half of the thread', () => {
  const { time, addMany, waitFor } = setUp()
  for (let companies = 0; companies < 10; companies += 1) addMany(company(), 1_200)
  waitFor(12_000)
  assertBetween((12_000 * COST_MS) / time.ms, 0.42, 0.52)
})

test('sends deliveries immediately while no other company is active', () => {
  let isContended = false
  const { time, sent, addMany, waitFor } = setUp({ isContended: () => isContended })
  const busy = company()
  addMany(busy, 5_000)
  assert.deepEqual([sent.length, time.turns], [5_000, 0])
  isContended = true
  addMany(busy, 1_000)
  assert(sent.length < 5_100, `${sent.length} sent`)
  isContended = false
  waitFor(6_000)
  assertBetween(time.ms, 6_000 * SEND_MS, 6_100 * SEND_MS)
})

test('sends for at most 2 ms per tick while another company is active', () => {
  const { time, sent, addMany } = setUp()
  addMany(company(), 3_000)
  let sentBefore = 0
  time.runUntil(() => {
    assert(sent.length - sentBefore <= 8, `${sent.length - sentBefore} in one turn`)
    sentBefore = sent.length
    return sent.length === 3_000
  })
})

test('a company with few deliveries does not wait for a busy one', () => {
  const { time, sent, addMany, waitFor } = setUp()
  const [busy, ordinary] = [company(), company()]
  addMany(busy, 6_000)
  waitFor(2_000)
  for (let nth = 0; nth < 20; nth += 1) {
    const [startedAtMs, countBefore] = [time.ms, sent.length]
    addMany(ordinary, 1)
    time.runUntil(() => sent.includes(ordinary, countBefore))
    assert(time.ms - startedAtMs <= 2, `${time.ms - startedAtMs} ms`)
    waitFor(sent.length + 100)
  }
})

test('busy companies take turns', () => {
  const { sent, addMany, waitFor } = setUp()
  const companies = [company(), company(), company()]
  for (const companyId of companies) addMany(companyId, 2_000)
  waitFor(4_500)
  for (const companyId of companies) {
    assertBetween(sent.filter((id) => id === companyId).length, 1_400, 1_600)
  }
})

test('withdrawn deliveries are not sent', () => {
  const { time, sent, pacer, addMany } = setUp()
  const [one, other] = [company(), company()]
  addMany(one, 2_000)
  addMany(other, 2_000)
  const taken = pacer.take(one, () => true)
  assert.equal(taken.length + sent.filter((id) => id === one).length, 2_000)
  assert.deepEqual(
    pacer.take(other, () => false),
    [],
  )
  const rest = pacer.takeAll()
  const sentCount = sent.length
  time.runUntil(() => false)
  assert.deepEqual([sent.length, taken.length + rest.length], [sentCount, 4_000 - sentCount])
})
