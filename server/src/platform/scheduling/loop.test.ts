import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { Loop } from './loop.ts'

test('logs the same failure at most once every ten seconds, and a different one at once', async () => {
  const logged: string[] = []
  const write = (line: string) => void logged.push(JSON.parse(line).err.message)
  const { clock: monotonic, advance } = manualClock(0)
  let message = 'refused'
  await using loop = new Loop({
    name: 'test',
    everyMs: 60_000,
    logger: pino({ level: 'error' }, { write }),
    monotonic,
    run: async () => {
      throw new Error(message)
    },
  })
  for (let runs = 0; runs < 50; runs += 1) {
    await loop.runNow()
    advance(200)
  }
  assert.deepEqual(logged, ['refused'])
  await loop.runNow()
  assert.deepEqual(logged, ['refused', 'refused'])
  message = 'denied'
  await loop.runNow()
  await loop.runNow()
  assert.deepEqual(logged, ['refused', 'refused', 'denied'])
})
