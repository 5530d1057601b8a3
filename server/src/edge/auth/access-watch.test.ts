import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { ApiError } from '../../errors.ts'
import { createLogger } from '../../platform/logger.ts'
import { AccessWatch } from './access-watch.ts'

const LIMITS = { recheckMs: 10, firstCheckMs: 1, readMsMax: 20, unconfirmedMsMax: 100 }
const logger = createLogger('silent')

test('ends a stream whose access cannot be confirmed in time, even if a read never returns', async () => {
  const lost = Promise.withResolvers<unknown>()
  const watch = new AccessWatch<string>(() => new Promise(() => {}), logger, LIMITS)
  // The watch alone doesn't keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  const startedAtMs = performance.now()
  using _watched = watch.watch('id', () => {}, lost.resolve)
  const reason = await lost.promise
  clearInterval(alive)
  assert(reason instanceof ApiError && reason.code === 'unavailable')
  assert(performance.now() - startedAtMs >= LIMITS.unconfirmedMsMax)
})

test('keeps a stream while reads fail for less than the limit', async () => {
  let reads = 0
  const checked = Promise.withResolvers<string | null>()
  const read = async (): Promise<Map<string, string>> => {
    reads += 1
    if (reads < 3) throw new Error('no database')
    return new Map([['id', 'granted']])
  }
  const watch = new AccessWatch<string>(read, logger, { ...LIMITS, unconfirmedMsMax: 60_000 })
  const alive = setInterval(() => {}, 1_000)
  using _watched = watch.watch('id', checked.resolve, () => checked.resolve('lost'))
  assert.equal(await checked.promise, 'granted')
  clearInterval(alive)
})

test('logs nothing about a read that fails after its streams have ended', async () => {
  const lines: string[] = []
  const log = pino({}, { write: (line) => void lines.push(line) })
  const reading = Promise.withResolvers<void>()
  const failed = Promise.withResolvers<Map<string, string>>()
  const read = () => {
    reading.resolve()
    return failed.promise
  }
  const watch = new AccessWatch<string>(read, log, { ...LIMITS, readMsMax: 60_000 })
  const alive = setInterval(() => {}, 1_000)
  const watched = watch.watch(
    'id',
    () => {},
    () => assert.fail(),
  )
  await reading.promise
  watched[Symbol.dispose]()
  failed.reject(new Error('the pool has ended'))
  await new Promise(setImmediate)
  clearInterval(alive)
  assert.deepEqual(lines, [])
})
