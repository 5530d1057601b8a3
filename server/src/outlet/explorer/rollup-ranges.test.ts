import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { splitRange } from './rollup-ranges.ts'

const QUARTER_MS = 900_000

test('the parts of a range cover it without gaps or overlaps', () => {
  const times = fc.integer({ min: -4_000_000_000_000, max: 4_000_000_000_000 })
  const steps = fc.constantFrom(null, 1, 60, 900, 1_800, 3_600, 21_600, 86_400, 604_800)
  fc.assert(
    fc.property(
      times,
      fc.integer({ min: 1, max: 4_000_000_000 }),
      steps,
      (fromMs, lengthMs, step) => {
        const toMs = fromMs + lengthMs
        const { cells, live } = splitRange({ fromMs, toMs }, step)
        const parts = [...cells, ...live].toSorted((a, b) => a.fromMs - b.fromMs)
        let atMs = fromMs
        for (const part of parts) {
          assert.equal(part.fromMs, atMs)
          atMs = part.toMs
        }
        assert.equal(atMs, toMs)
        for (const cell of cells) {
          assert(
            cell.fromMs % (cell.grainS * 1_000) === 0 && cell.toMs % (cell.grainS * 1_000) === 0,
          )
          assert(step === null || step % cell.grainS === 0)
        }
        if (step === null || step % 900 === 0) {
          assert(live.every((part) => part.toMs - part.fromMs < 2 * QUARTER_MS))
        }
      },
    ),
  )
})

test('reads a month in six-hour steps, except at its ends', () => {
  const fromMs = Date.UTC(2026, 0, 1, 1, 5)
  const toMs = Date.UTC(2026, 0, 31, 1, 5)
  const { cells } = splitRange({ fromMs, toMs }, 21_600)
  const six = cells.find(({ grainS }) => grainS === 21_600)
  assert.equal(six?.fromMs, Date.UTC(2026, 0, 1, 6))
  assert.equal(six?.toMs, Date.UTC(2026, 0, 31))
})
