import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { assertId, idTimeMs, newId } from '../platform/id.ts'
import type { EventId } from './event.ts'
import { nextEventId } from './event-id.ts'

const NOW_MS = Date.parse('2026-03-01T12:00:00Z')
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Steps of a clock: forward, unchanged, and back by a moment or by years. */
const anyStepMs = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 1, max: 5 }),
  fc.integer({ min: -5_000, max: 5_000 }),
  fc.integer({ min: -40_000_000_000, max: 40_000_000_000 }),
)
const anyFraction = fc.oneof(
  fc.constant(0),
  fc.constant(1 - 2 ** -32),
  fc.integer({ min: 0, max: 2 ** 32 - 1 }).map((bits) => bits / 2 ** 32),
)

test('ids always ascend and are valid version 7 UUIDs, whatever the clock does', () => {
  const anyWalk = fc.array(fc.tuple(anyStepMs, anyFraction), { maxLength: 60 })
  fc.assert(
    fc.property(anyWalk, (walk) => {
      let nowMs = NOW_MS
      let last: EventId = nextEventId(null, nowMs, () => 0)
      for (const [stepMs, fraction] of walk) {
        nowMs = Math.max(0, nowMs + stepMs)
        const next = nextEventId(last, nowMs, () => fraction)
        assert(next > last, `${next} after ${last}`)
        assert.match(next, UUID_V7)
        last = next
      }
    }),
  )
})

test('an id contains the current time if it is later than that of the previous id', () => {
  const first = nextEventId(null, NOW_MS, () => 0)
  assert.equal(idTimeMs(first), NOW_MS)
  assert.equal(idTimeMs(nextEventId(first, NOW_MS + 1, () => 0)), NOW_MS + 1)
})

test('ids keep the time of the previous id while the clock stands still or runs behind', () => {
  const last = newId<'event'>(NOW_MS)
  for (const nowMs of [NOW_MS, NOW_MS - 1, NOW_MS - 86_400_000, 0]) {
    const next = nextEventId(last, nowMs, () => 0.5)
    assert.equal(idTimeMs(next), NOW_MS)
    assert(next > last)
  }
})

test('ids sort the same as text and as numbers, across every carry', () => {
  const carries = ['00000000000f', '0000000fffff', '00ffffffffff', '0fffffffffff', 'fffffffffffe']
  for (const tail of carries) {
    const last = assertId<'event'>(`019cab2f-1c00-7abc-8def-${tail}`)
    const next = nextEventId(last, 0, () => 0)
    const value = (id: string) => BigInt(`0x${id.replaceAll('-', '')}`)
    assert.equal(value(next), value(last) + 1n)
  }
})

test('an exhausted counter continues in the next millisecond', () => {
  const last = assertId<'event'>('019cab2f-1c00-7fff-bfff-ffffffffffff')
  for (const fraction of [0, 0.999]) {
    const next = nextEventId(last, 0, () => fraction)
    assert.equal(idTimeMs(next), idTimeMs(last) + 1)
    assert(next > last)
    assert.match(next, UUID_V7)
  }
})
