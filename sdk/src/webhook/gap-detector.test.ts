import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { GapDetector } from './gap-detector.ts'

test('reports exactly the numbers that are missing, in any order of arrival', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 }),
      (arrivals) => {
        let detector = new GapDetector()
        const seen = new Set<number>()
        for (const sequence of arrivals) {
          assert.equal(detector.add(sequence), !seen.has(sequence))
          seen.add(sequence)
          detector = new GapDetector(JSON.parse(JSON.stringify(detector.state)))
        }
        const highest = Math.max(...seen)
        const missing = Array.from({ length: highest }, (_, nth) => nth + 1).filter(
          (sequence) => !seen.has(sequence),
        )
        const reported = detector
          .missing()
          .flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, nth) => from + nth))
        assert.deepEqual(reported, missing)
        assert.equal(detector.watermark, (missing[0] ?? highest + 1) - 1)
      },
    ),
  )
})

test('many gaps take a bounded amount of memory, and every missing delivery is still reported', () => {
  const detector = new GapDetector()
  for (let sequence = 2; sequence <= 10_000; sequence += 2) detector.add(sequence)
  assert.equal(detector.state.seen.length, 1_000)
  for (let sequence = 1; sequence <= 1_999; sequence += 2) detector.add(sequence)
  // 2,002 arrived but was not noted, so it counts as missing.
  assert.equal(detector.watermark, 2_000)
  assert.deepEqual(detector.missing(), [])
})

test('values that are not sequence numbers are refused', () => {
  for (const sequence of [0, -1, 1.5, Number.NaN]) {
    assert.throws(() => new GapDetector().add(sequence), RangeError)
  }
})
