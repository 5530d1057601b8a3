import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { readTimeZone } from '../../../platform/time/time-zone.ts'
import { listBars } from './histogram-step.ts'
import { splitRange } from './rollup-ranges.ts'

const QUARTER_MS = 900_000

test('the parts of a range cover it without gaps or overlaps', () => {
  const times = fc.integer({ min: -4_000_000_000_000, max: 4_000_000_000_000 })
  const steps = fc.constantFrom(null, 60, 900, 1_800, 3_600, 21_600, 86_400, 604_800)
  const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kolkata', 'Australia/Lord_Howe')
  fc.assert(
    fc.property(
      times,
      fc.integer({ min: 1, max: 4_000_000_000 }),
      steps,
      zones,
      (fromMs, lengthMs, step, zone) => {
        const toMs = fromMs + Math.min(lengthMs, (step ?? 3_600) * 300_000)
        const offsetOf = readTimeZone(zone)
        assert(offsetOf)
        const bars = step === null ? null : listBars({ fromMs, toMs }, step, offsetOf).starts
        const { cells, live } = splitRange({ fromMs, toMs }, bars)
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
          for (let ms = cell.fromMs; ms < cell.toMs; ms += cell.grainS * 1_000) {
            const endMs = ms + cell.grainS * 1_000
            assert(!bars?.some((startMs) => startMs > ms && startMs < endMs))
          }
        }
        if (bars === null || bars.slice(1).every((startMs) => startMs % QUARTER_MS === 0)) {
          assert(live.every((part) => part.toMs - part.fromMs < 2 * QUARTER_MS))
        }
      },
    ),
  )
})

test('reads a month in six-hour steps, except at its ends', () => {
  const fromMs = Date.UTC(2026, 0, 1, 1, 5)
  const toMs = Date.UTC(2026, 0, 31, 1, 5)
  const bars = Array.from({ length: 121 }, (_, nth) => Date.UTC(2026, 0, 1) + nth * 21_600_000)
  const { cells } = splitRange({ fromMs, toMs }, bars)
  assert.equal(cells.length, 3)
  const six = cells.find(({ grainS }) => grainS === 21_600)
  assert.equal(six?.fromMs, Date.UTC(2026, 0, 1, 6))
  assert.equal(six?.toMs, Date.UTC(2026, 0, 31))
})
