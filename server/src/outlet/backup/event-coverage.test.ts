import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coverageOf, type EventRun, missingRuns, neededFiles } from './event-coverage.ts'

const run = (workspaceId: string, first: number, last: number): EventRun => ({
  workspaceId,
  first,
  last,
  lastHash: `${workspaceId}${last}`,
})
const fileOf = (...runs: EventRun[]) => ({
  file: { path: 'events/x.zst', bytes: 1, sha256: '' },
  rows: 0,
  runs,
})
const head = (workspaceId: string, seq: number, archivedSeq = 0) => ({
  workspaceId,
  seq,
  hash: '',
  archivedSeq,
})

test('a backup continues after the last event that it has, or after the archive', () => {
  const covered = coverageOf([fileOf(run('a', 1, 5), run('b', 1, 3)), fileOf(run('a', 6, 7))])
  assert.deepEqual(covered.get('a'), { last: 7, lastHash: 'a7' })
  const heads = [head('a', 9), head('b', 9, 6), head('c', 2), head('d', 0), head('e', 4, 4)]
  assert.deepEqual(
    [...missingRuns(heads, covered, 100)],
    [
      { workspaceId: 'a', first: 8, last: 9 },
      { workspaceId: 'b', first: 7, last: 9 },
      { workspaceId: 'c', first: 1, last: 2 },
    ],
  )
})

test('long ranges are split, without a gap', () => {
  assert.deepEqual(
    [...missingRuns([head('a', 7)], new Map(), 3)].map(({ first, last }) => [first, last]),
    [
      [1, 3],
      [4, 6],
      [7, 7],
    ],
  )
})

test('a file is needed until all of its events are archived', () => {
  const files = [fileOf(run('a', 1, 5)), fileOf(run('a', 6, 9), run('b', 1, 1))]
  assert.deepEqual(neededFiles(files, [head('a', 9, 5), head('b', 1, 1)]), [files[1]])
  assert.deepEqual(neededFiles(files, [head('a', 9, 9), head('b', 1, 1)]), [])
  assert.deepEqual(neededFiles(files, [head('a', 9, 4), head('b', 1)]), files)
})
