import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShortLivedCache } from './cold-cache.ts'

const [ada, bob] = [{}, {}]

function counted() {
  let reads = 0
  const read = async () => {
    reads += 1
    await Promise.resolve()
    return { value: `value ${reads}`, bytes: 40 }
  }
  return { read, reads: () => reads }
}

test('reads a value once for all concurrent readers', async () => {
  const cache = new ShortLivedCache<string>(100)
  const { read, reads } = counted()
  const found = await Promise.all([cache.find('key', ada, read), cache.find('key', bob, read)])
  assert.deepEqual(found, ['value 1', 'value 1'])
  assert.equal(cache.get('key', ada), 'value 1')
  assert.equal(reads(), 1)
})

test('drops a value when its last reader is done', async () => {
  const cache = new ShortLivedCache<string>(100)
  const { read } = counted()
  await Promise.all([cache.find('key', ada, read), cache.find('key', bob, read)])
  cache.release('key', ada)
  assert.equal(cache.get('key', bob), 'value 1')
  cache.release('key', bob)
  assert.equal(cache.get('key', bob), null)
})

test('drops a value that is not requested again in time', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const cache = new ShortLivedCache<string>(100)
  await cache.find('key', ada, counted().read)
  t.mock.timers.tick(999)
  assert.equal(cache.get('key', ada), 'value 1')
  t.mock.timers.tick(999)
  assert.equal(cache.get('key', ada), 'value 1')
  t.mock.timers.tick(1_000)
  assert.equal(cache.get('key', ada), null)
})

test('returns a value that does not fit without caching it, and keeps the cached ones', async () => {
  const cache = new ShortLivedCache<string>(100)
  const { read } = counted()
  await cache.find('a', ada, read)
  await cache.find('b', ada, read)
  assert.equal(await cache.find('c', ada, read), 'value 3')
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => cache.get(key, ada)),
    ['value 1', 'value 2', null],
  )
  cache.release('a', ada)
  await cache.find('c', ada, read)
  assert.equal(cache.get('c', ada), 'value 4')
})

test('reports a failure to all waiting readers and does not cache it', async () => {
  const cache = new ShortLivedCache<string>(100)
  const fail = () => Promise.reject(new Error('unreadable'))
  const { read } = counted()
  for (const found of [cache.find('key', ada, fail), cache.find('key', bob, fail)]) {
    await assert.rejects(found, /unreadable/)
  }
  assert.equal(await cache.find('key', ada, read), 'value 1')
})

test('a reader that aborts stops waiting, and the read continues for the others', async () => {
  const cache = new ShortLivedCache<string>(100)
  const stop = new AbortController()
  const { promise, resolve } = Promise.withResolvers<{ value: string; bytes: number }>()
  let isGivenUp = false
  const read = (signal: AbortSignal) => {
    signal.addEventListener('abort', () => (isGivenUp = true))
    return promise
  }
  const left = cache.find('key', ada, read, stop.signal)
  const stays = cache.find('key', bob, read)
  stop.abort(new Error('left'))
  await assert.rejects(left, /left/)
  assert(!isGivenUp)
  resolve({ value: 'value', bytes: 1 })
  assert.equal(await stays, 'value')
})

test('cancels a read when its last reader aborts, and starts a new one for the next reader', async () => {
  const cache = new ShortLivedCache<string>(100)
  const stop = new AbortController()
  let isGivenUp = false
  const hang = (signal: AbortSignal) => {
    signal.addEventListener('abort', () => (isGivenUp = true))
    return new Promise<never>(() => {})
  }
  const left = cache.find('key', ada, hang, stop.signal)
  stop.abort(new Error('left'))
  await assert.rejects(left, /left/)
  assert(isGivenUp)
  assert.equal(await cache.find('key', bob, counted().read), 'value 1')
})
