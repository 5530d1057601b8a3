import assert from 'node:assert/strict'
import { scrypt as scryptWithCallback, type BinaryLike, type ScryptOptions } from 'node:crypto'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { HashingQueue } from './hashing-queue.ts'

const scrypt = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scryptWithCallback)

test('so many run, so many wait in their order, and the rest is refused at once', async () => {
  const queue = new HashingQueue({ runningMax: 2, waitingMax: 3 })
  const order: number[] = []
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
  const runs = ends.map(({ promise }, index) =>
    queue.run(async () => {
      order.push(index)
      await promise
    }),
  )
  await assert.rejects(runs[5] ?? Promise.resolve(), { code: 'overloaded', retryAfterSeconds: 1 })
  assert.deepEqual(order, [0, 1])
  for (const { resolve } of ends) resolve()
  await Promise.all(runs.slice(0, 5))
  assert.deepEqual(order, [0, 1, 2, 3, 4])
})

test('work that fails makes place for the next', async () => {
  const queue = new HashingQueue({ runningMax: 1, waitingMax: 1 })
  const failed = queue.run(async () => {
    throw new Error('no')
  })
  const next = queue.run(async () => 'yes')
  await assert.rejects(failed, /no/)
  assert.equal(await next, 'yes')
  assert.equal(await queue.run(async () => 'again'), 'again')
})

test('while some wait, as much time passes between two hashes as the last one took', async () => {
  const queue = new HashingQueue({ runningMax: 1, waitingMax: 2 })
  const spans: { beganMs: number; endedMs: number }[] = []
  const work = async () => {
    const beganMs = performance.now()
    await scrypt('password', 'salt', 64, { N: 32_768, maxmem: 2 ** 26 })
    spans.push({ beganMs, endedMs: performance.now() })
  }
  await Promise.all([queue.run(work), queue.run(work), queue.run(work)])
  for (const [index, { beganMs }] of spans.entries()) {
    const before = spans[index - 1]
    // Timers round down to a millisecond.
    if (before) assert(beganMs - before.endedMs >= before.endedMs - before.beganMs - 1)
  }
  assert.equal(spans.length, 3)
})
