import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/harness/timing/eventually.ts'
import { newId } from '../../../platform/id.ts'
import { createLogger } from '../../../platform/logger.ts'
import { SettleQueue } from './settle-queue.ts'
import type { SettledWebhook } from './settle-store.ts'
import type { Settlement } from './settlement.ts'

const logger = createLogger('silent')
const WORKSPACE = newId<'workspace'>()
const WEBHOOK = newId<'webhook'>()
const SETTLED = {
  workspaceId: WORKSPACE,
  webhookId: WEBHOOK,
  failureCount: 0,
  failingSince: null,
}

function settlements(count: number, workspaceId = WORKSPACE): Settlement[] {
  const endedAt = new Date(0)
  return Array.from({ length: count }, (_, index) => ({
    workspaceId,
    webhookId: WEBHOOK,
    deliveryId: newId(),
    sequence: index + 1,
    lease: newId(),
    status: 'SUCCEEDED',
    dueAt: endedAt,
    endedAt,
    record: {
      attempt: index + 1,
      url: 'https://receiver.example/',
      startedAt: endedAt.toISOString(),
      durationMs: 1,
      responseStatus: 200,
      errorClass: null,
      message: null,
      excerpt: '',
    },
  }))
}

/** A queue with a simulated write, and a way to wait until everything is written. */
function makeQueue(
  expected: number,
  write: (settlements: readonly Settlement[]) => Promise<SettledWebhook[]>,
) {
  const written: Settlement[] = []
  const queue = new SettleQueue({
    write: async (batch) => {
      const settled = await write(batch)
      written.push(...batch)
      return settled
    },
    onSettled: () => {},
    logger,
  })
  const whole = () => eventually(() => assert.equal(written.length, expected))
  return { queue, written, whole }
}

test('groups results of a few milliseconds into one write of at most 500, one write at a time', async () => {
  const sizes: number[] = []
  let isWriting = false
  const { queue, written, whole } = makeQueue(1_203, async (batch) => {
    assert(!isWriting)
    isWriting = true
    sizes.push(batch.length)
    await Promise.resolve()
    isWriting = false
    return [SETTLED]
  })
  await using _ = queue
  const all = settlements(1_203)
  for (const one of all) void queue.add(one)
  await whole()
  assert.deepEqual(sizes, [500, 500, 203])
  assert.deepEqual(written, all)
})

test('retries a failed write without losing, repeating or reordering results', async () => {
  let tries = 0
  const all = settlements(40)
  const late = settlements(7)
  const { queue, written, whole } = makeQueue(47, async () => {
    tries += 1
    if (tries === 1) {
      for (const one of late) void queue.add(one)
      throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
    }
    return [SETTLED]
  })
  await using _ = queue
  for (const one of all) void queue.add(one)
  await whole()
  assert.equal(tries, 2)
  assert.deepEqual(written, [...all, ...late])
})

test('a result that PostgreSQL always rejects does not delay others', async () => {
  const all = settlements(100)
  const bad = new Set([all[0], all[37], all[99]])
  const { queue, written, whole } = makeQueue(97, async (batch) => {
    if (batch.some((one) => bad.has(one))) {
      throw Object.assign(new Error('unsupported Unicode escape sequence'), { code: '22P05' })
    }
    return [SETTLED]
  })
  await using _ = queue
  const ends = all.map((one) => queue.add(one))
  await whole()
  // The promises of the bad ones resolve too.
  await Promise.all(ends)
  assert.deepEqual(
    written,
    all.filter((one) => !bad.has(one)),
  )
})

const timeout = () =>
  Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })

test('a write that times out is retried in smaller parts', async () => {
  const all = settlements(40)
  const { queue, written, whole } = makeQueue(40, async (batch) => {
    if (batch.length > 10) throw timeout()
    return [SETTLED]
  })
  await using _ = queue
  for (const one of all) void queue.add(one)
  await whole()
  assert.deepEqual(written, all)
})

test('writes that time out for one workspace do not delay other workspaces', async () => {
  const slow = newId<'workspace'>()
  const late = [...settlements(1, slow), ...settlements(1)]
  const batches: (readonly Settlement[])[] = []
  let isSlow = true
  const { queue, written, whole } = makeQueue(24, async (batch) => {
    batches.push(batch)
    if (batches.length === 1) for (const one of late) void queue.add(one)
    if (isSlow && batch.some((one) => one.workspaceId === slow)) throw timeout()
    return [SETTLED]
  })
  await using _ = queue
  const other = settlements(20)
  for (const one of [...settlements(2, slow), ...other]) void queue.add(one)
  await eventually(() => assert.equal(written.length, 21))
  // After the first write, no write mixes the slow workspace with another.
  const mixed = batches.filter((batch) => new Set(batch.map((one) => one.workspaceId)).size > 1)
  assert.equal(mixed.length, 1)
  isSlow = false
  await whole()
})

test('a result waits for at most one rejected write of another workspace', async () => {
  const slow = newId<'workspace'>()
  const [other] = settlements(1)
  assert(other)
  let rejectedSince = -1
  let isSlow = true
  const { queue, written, whole } = makeQueue(9, async (batch) => {
    if (!isSlow || batch[0]?.workspaceId !== slow) return [SETTLED]
    if (rejectedSince >= 0) rejectedSince += 1
    // From here on, each result of the slow workspace has a separate write.
    else if (batch.length === 1) {
      rejectedSince = 0
      void queue.add(other)
    }
    throw timeout()
  })
  await using _ = queue
  for (const one of settlements(8, slow)) void queue.add(one)
  await eventually(() => assert(written.includes(other)))
  assert(rejectedSince <= 1, `${rejectedSince} rejected writes before it`)
  isSlow = false
  await whole()
})

test('reports a result only after it is written and counted', async () => {
  const order: string[] = []
  await using queue = new SettleQueue({
    write: async () => {
      order.push('written')
      return [SETTLED]
    },
    onSettled: () => void order.push('counted'),
    logger,
  })
  const [one] = settlements(1)
  assert(one)
  await queue.add(one)
  assert.deepEqual(order, ['written', 'counted'])
})

test('disposal waits until all results are written', async () => {
  const all = settlements(700)
  const { queue, written } = makeQueue(700, async () => [SETTLED])
  for (const one of all) void queue.add(one)
  await queue[Symbol.asyncDispose]()
  assert.deepEqual(written, all)
})

test('disposal ends even if the database is gone, and writes nothing later', async () => {
  let tries = 0
  const isTried = Promise.withResolvers<void>()
  const { queue, written } = makeQueue(1, async () => {
    tries += 1
    isTried.resolve()
    throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
  })
  for (const one of settlements(1_000)) void queue.add(one)
  await isTried.promise
  await queue[Symbol.asyncDispose]()
  const triesAtTheEnd = tries
  assert(triesAtTheEnd <= 2)
  assert.deepEqual(written, [])
})

test('a listener that throws loses no results', async () => {
  const written: Settlement[] = []
  const all = settlements(2)
  const isHeard = Promise.withResolvers<void>()
  await using queue = new SettleQueue({
    write: async (batch) => {
      written.push(...batch)
      return [SETTLED]
    },
    onSettled: () => {
      isHeard.resolve()
      throw new Error('a bug')
    },
    logger,
  })
  const ends = all.map((one) => queue.add(one))
  await isHeard.promise
  await Promise.all(ends)
  await queue[Symbol.asyncDispose]()
  assert.deepEqual(written, all)
})
