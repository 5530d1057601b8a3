import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whileAlive, withDeadline } from './deadline.ts'

const dead = () => new Error('dead')

test('returns the result of work that completes, whatever the checks say', async () => {
  let checks = 0
  const work = Promise.withResolvers<string>()
  const isAlive = async () => {
    checks += 1
    if (checks === 3) work.resolve('result')
    return true
  }
  assert.equal(await whileAlive(work.promise, { everyMs: 1, isAlive, dead }), 'result')
  assert.equal(checks, 3)
})

test('gives up work as soon as a check finds its dependency dead', async () => {
  const never = new Promise<string>(() => {})
  await assert.rejects(whileAlive(never, { everyMs: 1, isAlive: async () => false, dead }), /dead/)
})

test('work that completes during a check is not treated as dead', async () => {
  const work = Promise.withResolvers<string>()
  const verdict = Promise.withResolvers<boolean>()
  let deaths = 0
  const result = whileAlive(work.promise, {
    everyMs: 1,
    isAlive: () => {
      work.resolve('result')
      return verdict.promise
    },
    dead: () => {
      deaths += 1
      return new Error('dead')
    },
  })
  assert.equal(await result, 'result')
  verdict.resolve(false)
  await new Promise(setImmediate)
  assert.equal(deaths, 0)
})

test('gives up work only once if several checks end at the same time', async () => {
  const verdict = Promise.withResolvers<boolean>()
  let checks = 0
  let deaths = 0
  const work = whileAlive(new Promise<string>(() => {}), {
    everyMs: 1,
    isAlive: () => {
      checks += 1
      if (checks === 3) verdict.resolve(false)
      return verdict.promise
    },
    dead: () => {
      deaths += 1
      return new Error('dead')
    },
  })
  await assert.rejects(work, /dead/)
  assert.equal(deaths, 1)
})

/** Work that takes this many turns of the event loop. */
async function takeTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate)
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('work that was paused together with this thread gets a moment more than its time', async () => {
  const work = withDeadline(takeTurns(20), { timeoutMs: 20, late: dead })
  block(200)
  await work
  const never = withDeadline(new Promise(() => {}), { timeoutMs: 20, late: dead })
  block(200)
  await assert.rejects(never, /dead/)
})
