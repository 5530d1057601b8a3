import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../platform/id.ts'
import { samplePositions } from './sample-rows.ts'

const workspaceId = newId<'workspace'>()
const run = (fromSeq: number, toSeq: number, rows: number) => ({
  workspaceId,
  fromSeq,
  toSeq,
  rows,
})

test('measures a small export completely', () => {
  const samples = samplePositions([run(1, 60, 60), run(1, 50_000, 40)])
  assert.deepEqual(
    samples.map(({ fromSeq, limit, weight }) => [fromSeq, limit, weight]),
    [
      [1, 60, 60],
      [1, 40, 40],
    ],
  )
})

test('samples a large export at twenty positions from start to end', () => {
  const samples = samplePositions([run(1, 1_000, 1_000)])
  assert.deepEqual(
    samples.map(({ fromSeq }) => fromSeq).toSorted((a, b) => a - b),
    Array.from({ length: 20 }, (_, part) => part * 50 + 26),
  )
  for (const { limit, weight } of samples) assert.deepEqual([limit, weight], [5, 1])
})

test('spreads the first few samples over the whole export', () => {
  const samples = samplePositions([run(1, 1_000, 1_000)]).slice(0, 6)
  const thirds = samples.map(({ fromSeq }) => Math.floor(fromSeq / 334))
  for (const third of [0, 1, 2]) assert.equal(thirds.filter((at) => at === third).length, 2)
})

test('samples each run in proportion to its rows', () => {
  const runs = [run(1, 100_000, 300), run(500_001, 500_100, 100)]
  const late = samplePositions(runs).filter(({ fromSeq }) => fromSeq > 500_000)
  assert.equal(late.length, 5)
})

test('takes no samples of an empty export', () => {
  assert.deepEqual(samplePositions([]), [])
})
