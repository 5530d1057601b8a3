import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HashingQueue } from './hashing-queue.ts'

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
