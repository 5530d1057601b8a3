import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../errors.ts'
import { DownloadSlots } from './download-slots.ts'

const isOverloaded = (error: unknown) => error instanceof ApiError && error.code === 'overloaded'

test('limits downloads per company and per node, and frees the slots of those that end', () => {
  const slots = new DownloadSlots({
    downloadsMax: 3,
    perCompanyMax: 2,
    graceMs: 0,
    unreadMs: 1_000,
  })
  const first = slots.take('a')
  slots.take('a')
  assert.throws(() => slots.take('a'), isOverloaded)
  slots.take('b')
  assert.throws(() => slots.take('c'), isOverloaded)
  first[Symbol.dispose]()
  slots.take('c')
})

test('closing cuts open downloads, waits for them, and accepts no new ones', async () => {
  const slots = new DownloadSlots({
    downloadsMax: 3,
    perCompanyMax: 3,
    graceMs: 1,
    unreadMs: 1_000,
  })
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
  await new DownloadSlots({
    downloadsMax: 1,
    perCompanyMax: 1,
    graceMs: 1_000_000,
    unreadMs: 1_000,
  }).close()
})

/** Slots of the companies in `owners`, whose clients read nothing unless `reads` says so. */
function takeUnread(slots: DownloadSlots, owners: string, reads = (_nth: number) => false) {
  let readBytes = 0
  return owners.split('').map((companyId, nth) => {
    const slot = slots.take(companyId)
    slot.takenBytes = () => (reads(nth) ? (readBytes += 32_768) : 100)
    return slot
  })
}

/** Which of the downloads still run. */
function running(taken: ReturnType<typeof takeUnread>): boolean[] {
  return taken.map(({ stop }) => !stop.signal.aborted)
}

test('on a full node, a company replaces the longest unread download of the one with the most', () => {
  const slots = new DownloadSlots({
    downloadsMax: 5,
    perCompanyMax: 4,
    graceMs: 0,
    unreadMs: 1_000,
  })
  const taken = takeUnread(slots, 'abaaa', (nth) => nth === 0)
  slots.check(500)
  slots.check(900)
  assert.throws(() => slots.take('c'), isOverloaded, 'all of them may still be read')
  assert.deepEqual(running(taken), [true, true, true, true, true])
  slots.check(100)
  slots.take('c')
  assert.deepEqual(running(taken), [true, true, false, true, true])
  slots.take('c')
  assert.deepEqual(running(taken), [true, true, false, false, true])
  assert.throws(() => slots.take('c'), isOverloaded, 'no other company has more')
  assert.throws(() => slots.take('a'), isOverloaded)
})

test('a client that reads a few bytes at a time doesn’t keep its slot', () => {
  const limits = { downloadsMax: 2, perCompanyMax: 2, graceMs: 0, unreadMs: 1_000 }
  const slots = new DownloadSlots(limits)
  const taken = takeUnread(slots, 'aa')
  let readBytes = 0
  for (const slot of taken) slot.takenBytes = () => (readBytes += 1_000)
  for (let nth = 0; nth < 4; nth += 1) slots.check(400)
  slots.take('b')
  assert.deepEqual(running(taken), [false, true])
})

test('a download that is read, or has nothing to read yet, is never replaced', () => {
  const slots = new DownloadSlots({
    downloadsMax: 4,
    perCompanyMax: 4,
    graceMs: 0,
    unreadMs: 1_000,
  })
  const taken = takeUnread(slots, 'aaaa', (nth) => nth < 3)
  for (const slot of taken.slice(3)) slot.takenBytes = () => null
  for (let nth = 0; nth < 10; nth += 1) slots.check(1_000)
  assert.throws(() => slots.take('b'), isOverloaded)
  assert.deepEqual(running(taken), [true, true, true, true])
})
