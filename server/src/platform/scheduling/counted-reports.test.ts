import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { handClock } from '../../../test/harness/clock.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { CountedReports } from './counted-reports.ts'

type Line = { event: string; report: string; count?: number }

function start(report: (key: string, count: number) => Promise<boolean>, keysMax = 10) {
  const lines: Line[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const { clock: monotonic, advance } = handClock(0)
  const keyOf = (key: string) => key
  const options = {
    name: 'tests',
    everyMs: 60_000,
    keysMax,
    pollMs: 1,
    monotonic,
    logger,
    keyOf,
    report,
  }
  return { reports: new CountedReports(options), advance, lines }
}

test('reports a key soon, then at most once per interval, with the number of notes since', async () => {
  const seen: string[] = []
  const { reports, advance } = start(async (key, count) => seen.push(`${key} ${count}`) > 0)
  reports.note('a')
  await eventually(() => assert.deepEqual(seen, ['a 1']))
  for (let times = 0; times < 3; times += 1) reports.note('a')
  reports.note('b')
  // The round that reports `b` passes `a` over.
  await eventually(() => assert.deepEqual(seen, ['a 1', 'b 1']))
  advance(60_000)
  await eventually(() => assert.deepEqual(seen, ['a 1', 'b 1', 'a 3']))
  await reports[Symbol.asyncDispose]()
  assert.equal(seen.length, 3)
})

test('keeps the count of a report that has to wait, and logs what is lost at the end', async () => {
  const seen: number[] = []
  const { reports, lines } = start(async (_key, count) => seen.push(count) > 2)
  reports.note('a')
  await eventually(() => assert.deepEqual(seen, [1]))
  reports.note('a')
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, [1, 2])
  assert.deepEqual(
    lines.map(({ event, report, count }) => [event, report, count]),
    [['report.lost', 'tests', 2]],
  )
})

test('a key whose report fails does not hold up the others', async () => {
  const seen: string[] = []
  const { reports, lines } = start(async (key) => {
    if (key === 'bad') throw new Error('damaged')
    return seen.push(key) > 0
  })
  for (const key of ['bad', 'good']) reports.note(key)
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, ['good'])
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['report.failed', 'report.lost'],
  )
})

test('counts a limited number of keys, and logs how many notes of others there were', async () => {
  const seen: string[] = []
  const { reports, lines } = start(async (key, count) => seen.push(`${key} ${count}`) > 0, 2)
  for (const key of ['a', 'b', 'c', 'd', 'a']) reports.note(key)
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, ['a 2', 'b 1'])
  assert.deepEqual(
    lines.map(({ event, count }) => [event, count]),
    [['report.uncounted', 2]],
  )
})
