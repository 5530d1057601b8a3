import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BackgroundQueue } from './background-queue.ts'
import { createLogger } from '../logger.ts'

const logger = createLogger('silent')

test('runs jobs in order, even after a failure', async () => {
  const done: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  await using queue = new BackgroundQueue<number>({
    name: 'test',
    waitingMax: 10,
    logger,
    run: async (item) => {
      if (item === 2) throw new Error('not this one')
      done.push(item)
      if (item === 3) resolve()
    },
  })
  for (const item of [1, 2, 3]) assert.equal(queue.push(item), true)
  await promise
  assert.deepEqual(done, [1, 3])
})

test('a full queue accepts no more jobs, and closing it ends the running one and drops the rest', async () => {
  const done: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const queue = new BackgroundQueue<number>({
    name: 'test',
    waitingMax: 1,
    logger,
    run: async (item) => {
      await promise
      done.push(item)
    },
  })
  assert.deepEqual([queue.push(1), queue.push(2), queue.push(3)], [true, true, false])
  const closed = queue[Symbol.asyncDispose]()
  resolve()
  await closed
  assert.deepEqual(done, [1])
  assert.equal(queue.push(4), false)
})
