import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../errors.ts'
import { DownloadSlots } from './download-slots.ts'

const isOverloaded = (error: unknown) => error instanceof ApiError && error.code === 'overloaded'

test('limits downloads per company and per node, and frees the slots of those that end', () => {
  const slots = new DownloadSlots({ downloadsMax: 3, perCompanyMax: 2, graceMs: 0 })
  const first = slots.take('a')
  slots.take('a')
  assert.throws(() => slots.take('a'), isOverloaded)
  slots.take('b')
  assert.throws(() => slots.take('c'), isOverloaded)
  first[Symbol.dispose]()
  slots.take('c')
})

test('closing cuts open downloads, waits for them, and accepts no new ones', async () => {
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

test('closing without downloads returns immediately', async () => {
  await new DownloadSlots({ downloadsMax: 1, perCompanyMax: 1, graceMs: 1_000_000 }).close()
})
