import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import { type OffsetOf, readTimeZone } from '../../../platform/time/time-zone.ts'
import { chooseStepS, listBars } from './histogram-step.ts'

const HOUR_MS = 3_600_000

test('every range has a reasonable number of bars', () => {
  const lengths = fc.oneof(
    fc.integer({ min: 1, max: 4_000_000 }),
    fc.integer({ min: 1, max: 40_000 * DAY_MS }),
  )
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), lengths, (fromMs, lengthMs) => {
      const range = { fromMs, toMs: fromMs + lengthMs }
      const stepS = chooseStepS(range, zone('UTC'))
      const { starts } = listBars(range, stepS, zone('UTC'))
      assert(starts.length <= 121)
      // The step after two days is a week.
      const barsMin = lengthMs <= 240 * DAY_MS ? 40 : 30
      assert(lengthMs < 60_000 || starts.length >= barsMin)
    }),
  )
})

test('common ranges have the expected steps', () => {
  const stepOf = (lengthMs: number, name = 'UTC') =>
    chooseStepS({ fromMs: 0, toMs: lengthMs }, zone(name))
  assert.equal(stepOf(3_600_000), 30)
  assert.equal(stepOf(DAY_MS), 900)
  assert.equal(stepOf(7 * DAY_MS), 7_200)
  assert.equal(stepOf(30 * DAY_MS), 21_600)
  assert.equal(stepOf(90 * DAY_MS), 86_400)
  assert.equal(stepOf(7 * DAY_MS, 'Europe/Berlin'), 7_200)
  assert.equal(stepOf(30 * DAY_MS, 'Europe/Berlin'), 43_200)
  assert.equal(stepOf(31 * DAY_MS, 'Europe/Berlin'), 86_400)
})

test('weekly bars start on Mondays', () => {
  const stepS = chooseStepS({ fromMs: 0, toMs: 700 * DAY_MS }, zone('UTC'))
  assert.equal(stepS, 7 * 86_400)
  for (const startMs of listBars({ fromMs: 0, toMs: 100 * DAY_MS }, stepS, zone('UTC')).starts) {
    assert.equal(new Date(startMs).getUTCDay(), 1)
  }
})

function zone(name: string): OffsetOf {
  const offsetOf = readTimeZone(name)
  assert(offsetOf, name)
  return offsetOf
}

/** With whole, half and quarter hours, and clock changes of an hour, half an hour, and at midnight. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'America/Sao_Paulo',
  'Africa/Cairo',
]

test('bars cover the range without gaps and start at full hours or days of the time zone', () => {
  const lengths = fc.integer({ min: 1, max: 120 * DAY_MS })
  const starts = fc.integer({ min: Date.UTC(2005), max: Date.UTC(2027) })
  fc.assert(
    fc.property(fc.constantFrom(...ZONES), starts, lengths, (name, fromMs, lengthMs) => {
      const range = { fromMs, toMs: fromMs + lengthMs }
      const offsetOf = zone(name)
      const stepS = chooseStepS(range, offsetOf)
      const bars = listBars(range, stepS, offsetOf)
      assert((bars.starts[0] ?? Infinity) <= fromMs)
      assert((bars.starts.at(-1) ?? Infinity) < range.toMs && bars.endMs >= range.toMs)
      assert(bars.starts.length <= 122)
      for (const [index, startMs] of bars.starts.entries()) {
        const endMs = bars.starts[index + 1] ?? bars.endMs
        const lengthS = (endMs - startMs) / 1_000
        assert(index === 0 || startMs > fromMs)
        const isChange =
          offsetOf(startMs) !== offsetOf(endMs) || offsetOf(startMs - 1) !== offsetOf(startMs)
        assert(isChange || (startMs + offsetOf(startMs)) % (stepS * 1_000) === 0)
        assert(isChange ? lengthS <= stepS + 86_400 : lengthS === stepS, `${name} ${lengthS}`)
      }
    }),
  )
})

test('bars of days start at midnight, also on days with 23 and 25 hours', () => {
  const daysOf = (name: string, from: string) => {
    const fromMs = Date.parse(from)
    const { starts } = listBars({ fromMs, toMs: fromMs + 3 * DAY_MS }, 86_400, zone(name))
    return starts.map((startMs) => new Date(startMs).toISOString().slice(5, 16)).join(' ')
  }
  assert.equal(
    daysOf('Europe/Berlin', '2026-10-24T12:00:00Z'),
    '10-23T22:00 10-24T22:00 10-25T23:00 10-26T23:00',
  )
  assert.equal(
    daysOf('Europe/Berlin', '2026-03-28T12:00:00Z'),
    '03-27T23:00 03-28T23:00 03-29T22:00 03-30T22:00',
  )
  assert.equal(
    daysOf('Asia/Kolkata', '2026-10-24T00:00:00Z'),
    '10-23T18:30 10-24T18:30 10-25T18:30 10-26T18:30',
  )
  // The clocks skip midnight, so the day starts at 01:00.
  assert.equal(
    daysOf('America/Sao_Paulo', '2018-11-03T12:00:00Z'),
    '11-03T03:00 11-04T03:00 11-05T02:00 11-06T02:00',
  )
})

test('a clock change doesn’t lengthen bars of up to an hour', () => {
  const fromMs = Date.parse('2026-10-25T00:00:00Z')
  const { starts } = listBars({ fromMs, toMs: fromMs + 3 * HOUR_MS }, 900, zone('Europe/Berlin'))
  assert.equal(starts.length, 12)
})

test('knows the offsets of a time zone, and rejects unknown names', () => {
  const atMs = Date.UTC(2026, 0, 1)
  assert.equal(zone('Asia/Kathmandu')(atMs), 5.75 * HOUR_MS)
  assert.equal(zone('America/St_Johns')(atMs), -3.5 * HOUR_MS)
  assert.equal(zone('Europe/Berlin')(Date.UTC(1890, 0, 1)), (53 * 60 + 28) * 1_000)
  assert.equal(zone('UTC')(atMs), 0)
  assert.equal(readTimeZone('Europe/Atlantis'), null)
})
