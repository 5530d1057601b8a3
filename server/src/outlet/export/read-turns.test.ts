import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadTurns } from './read-turns.ts'

const { signal } = new AbortController()

test('so many have a turn at once, and the others follow in their order', async () => {
  const turns = new ReadTurns(2)
  const order: string[] = []
  const [first, second] = [await turns.take(signal), await turns.take(signal)]
  const third = turns.take(signal).then((turn) => (order.push('third'), turn))
  const fourth = turns.take(signal).then((turn) => (order.push('fourth'), turn))
  assert(turns.isCrowded)
  first[Symbol.dispose]()
  const turn = await third
  assert.deepEqual(order, ['third'])
  second[Symbol.dispose]()
  turn[Symbol.dispose]()
  const last = await fourth
  last[Symbol.dispose]()
  assert(!turns.isCrowded)
  await Promise.all([turns.take(signal), turns.take(signal)])
})

test('one that is stopped while it waits gives up its place', async () => {
  const turns = new ReadTurns(1)
  const turn = await turns.take(signal)
  const stop = new AbortController()
  const stopped = turns.take(stop.signal)
  const patient = turns.take(signal)
  stop.abort(new Error('stopped'))
  await assert.rejects(stopped, /stopped/)
  await assert.rejects(turns.take(stop.signal), /stopped/)
  turn[Symbol.dispose]()
  await patient
})
