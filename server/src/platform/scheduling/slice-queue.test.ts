import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SliceQueue, type SliceTimers } from './slice-queue.ts'
import { SERVICE, type SliceOwner } from './thread-share.ts'

const SLICE_MS = 5

/** Time passes only while a slice runs or the queue waits. */
class VirtualTime implements SliceTimers {
  ms = 0
  busyMs = 0

  nowMs = (): number => this.ms
  cpuMs = (): number => this.busyMs

  work(sliceMs: number): void {
    this.ms += sliceMs
    this.busyMs += sliceMs
  }

  get busyShare(): number {
    return this.busyMs / this.ms
  }

  after = (delayMs: number, run: () => void): (() => void) => {
    const immediate = setImmediate(() => {
      this.ms += delayMs
      run()
    })
    return () => clearImmediate(immediate)
  }
}

function setUp({ isAlone = false } = {}) {
  const time = new VirtualTime()
  const queue = new SliceQueue(time)
  const work = async (owner: SliceOwner, slices: number, sliceMs = SLICE_MS): Promise<void> => {
    for (let slice = 0; slice < slices; slice += 1) {
      queue.noteActivity(owner)
      if (!isAlone) queue.noteActivity('quiet')
      await queue.next(owner)
      time.work(sliceMs)
    }
    // The last slice ends with this turn.
    await new Promise(setImmediate)
  }
  return { time, queue, work }
}

function assertBetween(actual: number, min: number, max: number): void {
  assert(actual >= min && actual <= max, `${actual} is not between ${min} and ${max}`)
}

test('an owner that uses the thread continuously gets a quarter of it', async () => {
  const { time, work } = setUp()
  // Fifty requests get no more than one.
  await Promise.all(Array.from({ length: 50 }, () => work('busy', 20)))
  assertBetween(time.busyShare, 0.24, 0.29)
})

test('an owner pauses only while another one is active', async () => {
  const { time, work } = setUp({ isAlone: true })
  await work('busy', 1_000)
  assert.equal(time.busyShare, 1)
  const startedAtMs = time.ms
  await work('other', 1)
  await work('busy', 20)
  assertBetween((21 * SLICE_MS) / (time.ms - startedAtMs), 0.2, 0.35)
})

test('short slices get no more of the thread than long ones', async () => {
  const { time, work } = setUp()
  await work('busy', 10_000, 0.5)
  assertBetween(time.busyShare, 0.24, 0.29)
})

test('all owners together get half of the thread', async () => {
  const { time, work } = setUp()
  const owners = Array.from({ length: 10 }, (_, index) => `owner ${index}`)
  await Promise.all(owners.map((owner) => work(owner, 100)))
  assertBetween(time.busyShare, 0.45, 0.55)
})

test('a large body of an owner that used little recently does not pause', async () => {
  const { time, work } = setUp()
  for (let body = 0; body < 3; body += 1) {
    const startedAtMs = time.ms
    await work('rare', 40)
    assert.equal(time.ms - startedAtMs, 40 * SLICE_MS)
    time.ms += 10_000
  }
})

test('a paused owner does not delay others', async () => {
  const { time, work } = setUp()
  const busy = work('busy', 200)
  await work('busy', 60)
  const startedAtMs = time.ms
  await work('other', 4)
  // Its own slices, the same number of slices of the busy owner, and the pauses that all owners share.
  assertBetween(time.ms - startedAtMs, 4 * SLICE_MS, 4 * 4 * SLICE_MS)
  await busy
})

test("the service's own work does not pause", async () => {
  const { time, work } = setUp()
  await work(SERVICE, 400)
  assert.equal(time.ms, 400 * SLICE_MS)
})

test('an owner whose work is charged gets a quarter of the thread while another one is active', async () => {
  const { time, queue } = setUp()
  for (let page = 0; page < 1_000; page += 1) {
    queue.noteActivity('reader')
    queue.noteActivity('quiet')
    time.ms += queue.share.pauseMs('reader')
    time.work(3)
    queue.share.charge('reader', { cpuMs: 3, wallMs: 3 })
  }
  assert(queue.share.isOver('reader'))
  assert(!queue.share.isOver('quiet'))
  assertBetween(time.busyShare, 0.24, 0.29)
  time.ms += 10_000
  assert(!queue.share.isOver('reader'))
})

/** Runs 3 ms of short work for the owner, `count` times concurrently. */
async function runShorts({ time, queue }: ReturnType<typeof setUp>, owner: string, count: number) {
  const runs = Array.from(
    { length: count },
    async () => await queue.runShort(owner, () => time.work(3)),
  )
  await Promise.all(runs)
}

test('short work takes at most 12 ms of an event loop tick', async () => {
  const started = setUp({ isAlone: true })
  const { time } = started
  const turnsMs: number[] = []
  let isOver = false
  let beforeMs = 0
  const measure = () => {
    turnsMs.push(time.ms - beforeMs)
    beforeMs = time.ms
    if (!isOver) setImmediate(measure)
  }
  const running = runShorts(started, 'busy', 100)
  measure()
  await running
  isOver = true
  assert.equal(time.busyMs, 300)
  assert(Math.max(...turnsMs) <= 12, turnsMs.join(' '))
})

test('an owner of much short work gets a quarter of the thread while another one is active', async () => {
  const started = setUp()
  const { time, queue } = started
  for (let round = 0; round < 30; round += 1) {
    queue.noteActivity('busy')
    queue.noteActivity('quiet')
    await runShorts(started, 'busy', 20)
  }
  assertBetween(time.busyShare, 0.24, 0.35)
})

test('short work that throws rejects or throws for its own caller', async () => {
  const { time, queue } = setUp({ isAlone: true })
  const fail = () => {
    time.work(20)
    throw new Error('broken')
  }
  assert.throws(() => queue.runShort('one', fail), /broken/)
  const later = queue.runShort('one', fail)
  const last = queue.runShort('one', () => 'done')
  await assert.rejects(Promise.resolve(later), /broken/)
  assert.equal(await last, 'done')
})

test('work waiting for a slice gets one even if new short work keeps using the thread', async () => {
  const { time, queue } = setUp()
  let isOver = false
  const flood = () => {
    queue.noteActivity('one')
    queue.noteActivity('two')
    for (const owner of ['one', 'two', 'three']) {
      void Promise.resolve(queue.runShort(owner, () => time.work(3)))
    }
    if (!isOver) setImmediate(flood)
  }
  flood()
  // Wait until the owners together have used their share.
  while (time.busyMs < 600) await new Promise(setImmediate)
  const startedMs = time.ms
  await queue.next('quiet')
  isOver = true
  assert(time.ms - startedMs < 1_000, `it waited ${time.ms - startedMs} ms`)
})

test('a wait that is aborted takes no slice, and the others go on', async () => {
  const { queue } = setUp({ isAlone: true })
  const stop = new AbortController()
  const order: string[] = []
  const aborted = queue.next('a', stop.signal).then(
    () => order.push('aborted'),
    (error: unknown) => order.push(String(error)),
  )
  const second = queue.next('a').then(() => order.push('second'))
  const other = queue.next('b', new AbortController().signal).then(() => order.push('other'))
  stop.abort('stopped')
  await Promise.all([aborted, second, other])
  assert.deepEqual(order, ['stopped', 'second', 'other'])
  assert.throws(() => queue.next('a', stop.signal), /stopped/)
})

test('a long pause ends soon after the last other owner was active', async () => {
  const { queue, time } = setUp({ isAlone: true })
  queue.noteActivity('other')
  queue.share.charge('busy', { cpuMs: 60_000, wallMs: 60_000 })
  await queue.next('busy')
  assertBetween(time.ms, 1_000, 2_000)
})
