import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../../../test/harness/timing/eventually.ts'
import { BoundedOperations } from './bounded-operations.ts'

const late = () => new Error('late')
const forever = () => new Promise<never>(() => {})
const operations = (runningMax = 2) => new BoundedOperations({ runningMax, late })

test('rejects at the deadline when an operation never ends', async () => {
  await assert.rejects(operations().run(forever, { timeoutMs: 10 }), /late/)
})

test('rejects immediately when the signal aborts, while running or waiting', async () => {
  const slots = operations(1)
  const [first, second] = [new AbortController(), new AbortController()]
  const running = slots.run(forever, { timeoutMs: 10_000, signal: first.signal })
  const waiting = slots.run(forever, { timeoutMs: 10_000, signal: second.signal })
  for (const stop of [first, second]) stop.abort(new Error('left'))
  await assert.rejects(running, /left/)
  await assert.rejects(waiting, /left/)
  await assert.rejects(slots.run(forever, { timeoutMs: 10_000, signal: first.signal }), /left/)
})

test('never runs more operations than it has slots, however many hang', async () => {
  const slots = operations()
  let started = 0
  const hang = () => {
    started += 1
    return forever()
  }
  const hung = Array.from({ length: 10 }, () => slots.run(hang, { timeoutMs: 20 }))
  for (const { status } of await Promise.allSettled(hung)) assert.equal(status, 'rejected')
  await within(1_000, assert.rejects(slots.run(hang, { timeoutMs: 60_000 }), /late/))
  assert.equal(started, 2)
})

test('a hanging operation delays no other, and its slot is released when it ends', async () => {
  const slots = operations()
  const { promise, resolve } = Promise.withResolvers<void>()
  const hung = [0, 1].map(() => slots.run(() => promise, { timeoutMs: 10 }))
  await Promise.allSettled(hung)
  await assert.rejects(
    slots.run(async () => 1, { timeoutMs: 10_000 }),
    /late/,
  )
  resolve()
  await promise
  await new Promise(setImmediate)
  void slots.run(forever, { timeoutMs: 10_000 }).catch(() => {})
  const results = [1, 2, 3].map((n) => slots.run(async () => n, { timeoutMs: 60_000 }))
  assert.deepEqual(await Promise.all(results), [1, 2, 3])
})

test('passes on the error of an operation', async () => {
  const fail = async () => {
    throw new Error('no disk')
  }
  await assert.rejects(operations().run(fail, { timeoutMs: 60_000 }), /no disk/)
})
