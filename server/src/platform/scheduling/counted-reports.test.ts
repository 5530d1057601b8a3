import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { eventually } from '../../../test/harness/timing/eventually.ts'
import { CountedReports } from './counted-reports.ts'

type Line = { event: string; report: string; count?: number }

type Options = ConstructorParameters<typeof CountedReports<string>>[0]

function start(report: Options['report'], options: Partial<Options> = {}) {
  const lines: Line[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const { clock: monotonic, advance } = manualClock(0)
  const keyOf = (key: string) => key
  const common = { name: 'tests', pollMs: 1, monotonic, logger, keyOf, report }
  return { reports: new CountedReports({ ...common, ...options }), advance, lines }
}

test('reports a key soon, then at most once per interval, with the count since the last report', async () => {
  const seen: string[] = []
  const { reports, advance } = start(async (key, count) => seen.push(`${key} ${count}`) > 0)
  reports.count('a')
  await eventually(() => assert.deepEqual(seen, ['a 1']))
  for (let times = 0; times < 3; times += 1) reports.count('a')
  reports.count('b')
  // The round that reports `b` skips `a`.
  await eventually(() => assert.deepEqual(seen, ['a 1', 'b 1']))
  advance(60_000)
  await eventually(() => assert.deepEqual(seen, ['a 1', 'b 1', 'a 3']))
  await reports[Symbol.asyncDispose]()
  assert.equal(seen.length, 3)
})

test('keeps the count of a report that has to wait, and logs what is lost at the end', async () => {
  const seen: number[] = []
  const { reports, lines } = start(async (_key, count) => seen.push(count) > 2)
  reports.count('a')
  await eventually(() => assert.deepEqual(seen, [1]))
  reports.count('a')
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
  for (const key of ['bad', 'good']) reports.count(key)
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, ['good'])
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['report.failed', 'report.lost'],
  )
})

test('counts a limited number of keys, and logs how many counts of other keys were dropped', async () => {
  const seen: string[] = []
  const { reports, lines } = start(async (key, count) => seen.push(`${key} ${count}`) > 0, {
    keysMax: 2,
  })
  for (const key of ['a', 'b', 'c', 'd', 'a']) reports.count(key)
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, ['a 2', 'b 1'])
  assert.deepEqual(
    lines.map(({ event, count }) => [event, count]),
    [['report.uncounted', 2]],
  )
})

test('limits the keys of a group, so that others are still counted', async () => {
  const seen: string[] = []
  const { reports, lines } = start(async (key) => seen.push(key) > 0, {
    groupOf: (key) => key.charAt(0),
  })
  for (let nth = 0; nth < 150; nth += 1) reports.count(`a${nth}`)
  reports.count('b')
  await reports[Symbol.asyncDispose]()
  assert.deepEqual([seen.length, seen.at(-1)], [101, 'b'])
  assert.deepEqual(
    lines.map(({ event, count }) => [event, count]),
    [['report.uncounted', 50]],
  )
})

test('a round ends although unknown keys keep arriving, and reports the keys that it passed', async () => {
  const seen: string[] = []
  let nth = 0
  const { reports, advance } = start(async (key, count) => seen.push(`${key} ${count}`) > 0, {
    isKnown: async (key) => {
      if (key === 'known') return true
      nth += 1
      reports.count(`unknown ${nth}`)
      advance(1_000)
      return false
    },
  })
  reports.count('known')
  reports.count('unknown 0')
  await eventually(() => assert.deepEqual(seen, ['known 1']))
  reports.count('known')
  await eventually(() => assert.deepEqual(seen, ['known 1', 'known 1']))
  await reports[Symbol.asyncDispose]()
})

test('on disposal, keys that are known come first, and the others are not lost reports', async () => {
  const seen: string[] = []
  const checked: string[] = []
  const { promise: hanging, resolve } = Promise.withResolvers<boolean>()
  const { reports, lines } = start(async (key) => seen.push(key) > 0, {
    delayMs: 1_000,
    isKnown: async (key) => {
      checked.push(key)
      if (key === 'known') return true
      if (checked.length > 1) return await hanging
      throw new Error('damaged')
    },
  })
  reports.count('unchecked')
  reports.count('known')
  await eventually(() => assert.deepEqual(checked, ['unchecked', 'known']))
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, ['known'])
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['report.failed'],
  )
  resolve(false)
})

test('reports a key once the delay since its first count has passed, or on disposal', async () => {
  const seen: string[] = []
  const checked: string[] = []
  const { reports, advance } = start(async (key, count) => seen.push(`${key} ${count}`) > 0, {
    delayMs: 3_600_000,
    isKnown: async (key) => checked.push(key) > 0,
  })
  for (let times = 0; times < 30; times += 1) {
    reports.count('a')
    advance(119_000)
  }
  advance(29_999)
  reports.count('b')
  // The round that checks `b` skips `a`.
  await eventually(() => assert.deepEqual(checked, ['a', 'b']))
  assert.deepEqual(seen, [])
  advance(1)
  await eventually(() => assert.deepEqual(seen, ['a 30']))
  reports.count('a')
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(seen, ['a 30', 'a 1', 'b 1'])
})

test('drops an unknown key at once, which makes room for others', async () => {
  const seen: string[] = []
  const checked: string[] = []
  const { reports, advance, lines } = start(async (key) => seen.push(key) > 0, {
    delayMs: 1_000,
    keysMax: 1,
    isKnown: async (key) => checked.push(key) > 0 && key === 'known',
  })
  reports.count('unknown')
  await eventually(() => assert.deepEqual(checked, ['unknown']))
  reports.count('known')
  await eventually(() => assert.deepEqual(checked, ['unknown', 'known']))
  advance(1_000)
  await eventually(() => assert.deepEqual(seen, ['known']))
  await reports[Symbol.asyncDispose]()
  assert.deepEqual([checked, seen, lines], [['unknown', 'known'], ['known'], []])
})

test('disposal does not wait for a report that hangs, and logs how many counts are lost', async () => {
  const { promise: hanging, resolve } = Promise.withResolvers<boolean>()
  const { reports, lines } = start(() => hanging)
  for (const key of ['a', 'b', 'b']) reports.count(key)
  await reports[Symbol.asyncDispose]()
  assert.deepEqual(
    lines.map(({ event, count }) => [event, count]),
    [['report.lost', 3]],
  )
  resolve(true)
})
