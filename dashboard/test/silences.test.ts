import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Arrivals, findSilences } from '../src/pages/integrity/silences.ts'

const START_MS = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000

function arrivalsOf(counts: number[], previousCounts: number[]): Arrivals {
  const at = (hour: number) => new Date(START_MS + hour * HOUR_MS).toISOString()
  return {
    from: at(0),
    to: at(counts.length),
    stepSeconds: 3_600,
    bars: counts.map((_, hour) => at(hour)),
    lastBarEnd: at(counts.length),
    counts,
    previousCounts,
    late: 0,
    sequence: null,
    hotSince: at(0),
  }
}

function silencesOf(counts: number[], previousCounts: number[], hours = counts.length) {
  return findSilences(arrivalsOf(counts, previousCounts), START_MS + hours * HOUR_MS).map(
    ({ fromMs, toMs, before }) => [
      (fromMs - START_MS) / HOUR_MS,
      (toMs - START_MS) / HOUR_MS,
      before,
    ],
  )
}

test('empty bars in a row are one silence', () => {
  assert.deepEqual(silencesOf([9, 0, 0, 0, 9], [9, 4, 0, 3, 9]), [[1, 4, 7]])
  assert.deepEqual(silencesOf([0, 9, 0], [5, 9, 6]), [
    [0, 1, 5],
    [2, 3, 6],
  ])
})

test('a time that was as quiet before is not a silence', () => {
  assert.deepEqual(silencesOf([9, 0, 0, 9], [9, 2, 2, 9]), [])
})

test('a bar that is not over yet is not a silence', () => {
  assert.deepEqual(silencesOf([9, 0, 0], [9, 7, 7], 2.5), [[1, 2, 7]])
})
