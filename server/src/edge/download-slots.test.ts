import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../errors.ts'
import { DownloadSlots } from './download-slots.ts'

const isOverloaded = (error: unknown) => error instanceof ApiError && error.code === 'overloaded'

test('a company has its share, the node its bound, and who leaves makes room', () => {
  const slots = new DownloadSlots({ downloadsMax: 3, perCompanyMax: 2, graceMs: 0 })
  const first = slots.take('a')
  slots.take('a')
  assert.throws(() => slots.take('a'), isOverloaded)
  slots.take('b')
  assert.throws(() => slots.take('c'), isOverloaded)
  first[Symbol.dispose]()
  slots.take('c')
})

test('closing cuts what does not end by itself, waits for it, and lets nothing new begin', async () => {
  const slots = new DownloadSlots({ downloadsMax: 3, perCompanyMax: 3, graceMs: 1 })
  const slot = slots.take('a')
  let isClosed = false
  const closing = slots.close().then(() => (isClosed = true))
  assert.throws(() => slots.take('b'), isOverloaded)
  await new Promise((resolve) => slot.stop.signal.addEventListener('abort', resolve))
  assert(!isClosed)
  slot[Symbol.dispose]()
  await closing
})

test('closing without downloads takes no time', async () => {
  await new DownloadSlots({ downloadsMax: 1, perCompanyMax: 1, graceMs: 1_000_000 }).close()
})
