import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../platform/id.ts'
import {
  type ObjectState,
  type ObjectStore,
  StorageError,
} from '../../platform/object-store/object-store.ts'
import type { Segment } from './segment-store.ts'
import { hasUnready, requestRestores } from './restore.ts'

const segment: Segment = {
  workspaceId: newId<'workspace'>(),
  firstSeq: 1,
  lastSeq: 1,
  objectKey: 'file',
  bytes: 1,
  sha256: '',
  footerSha256: '',
  firstPrevHash: '',
  lastHash: '',
  lastId: newId(),
  minTimestampMs: 0,
  maxTimestampMs: 0,
  minReceivedAtMs: 0,
  maxReceivedAtMs: 0,
}

async function* segments(count: number): AsyncGenerator<Segment, void, void> {
  for (let nth = 0; nth < count; nth += 1) yield { ...segment, objectKey: `file ${nth}` }
}

/** A storage with this `stat`, which counts the calls. Other operations fail. */
function storeOf(stat: () => Promise<ObjectState>) {
  const calls = { stat: 0, restore: 0 }
  const unexpected = () => Promise.reject(new Error('unexpected call'))
  const archive: ObjectStore = {
    put: unexpected,
    read: unexpected,
    readTagged: unexpected,
    replace: unexpected,
    readRange: unexpected,
    list: unexpected,
    delete: unexpected,
    stat: async () => {
      calls.stat += 1
      return await stat()
    },
    restore: async () => void (calls.restore += 1),
    [Symbol.asyncDispose]: async () => {},
  }
  return { archive, calls }
}

const LIMITS = { checkMs: 10_000 }
const COLD: ObjectState = { bytes: 1, readiness: 'cold' }
const READY: ObjectState = { bytes: 1, readiness: 'ready' }

test('requests each cold file, a few at a time and at most a thousand per call', async () => {
  for (const [files, count] of [
    [1, 1],
    [20, 20],
    [5_000, 1_000],
  ] as const) {
    const { archive, calls } = storeOf(async () => COLD)
    assert.equal(await requestRestores(archive, segments(files), LIMITS), true)
    assert.deepEqual(calls, { stat: count, restore: count })
  }
})

test('a check requests no restore and stops at the first file that is not ready', async () => {
  const { archive, calls } = storeOf(async () => COLD)
  assert.equal(await hasUnready(archive, segments(100), LIMITS), true)
  assert(calls.stat <= 8 && calls.restore === 0)
  assert.equal(await hasUnready(storeOf(async () => READY).archive, segments(100), LIMITS), false)
})

test('returns an error if the storage does not respond for ten seconds', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let successes = 8
  const { promise: never } = Promise.withResolvers<ObjectState>()
  const { promise: hangs, resolve: hang } = Promise.withResolvers<void>()
  const { archive } = storeOf(async () => {
    if (successes > 0) {
      successes -= 1
      return READY
    }
    // The timers of this batch are set by the end of this event loop iteration.
    setImmediate(hang)
    return await never
  })
  const checking = requestRestores(archive, segments(100), LIMITS)
  await hangs
  t.mock.timers.tick(10_000)
  await assert.rejects(checking, StorageError)
})

test('checks a slow storage for ten seconds, and treats unchecked files as ready', async (t) => {
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const { archive, calls } = storeOf(async () => {
    nowMs += 500
    return READY
  })
  assert.equal(await requestRestores(archive, segments(100), LIMITS), false)
  assert.equal(calls.stat, 24)
})

test('returns an error if the storage fails', async () => {
  const { archive } = storeOf(() => Promise.reject(new Error('refused')))
  await assert.rejects(requestRestores(archive, segments(3), LIMITS), /refused/)
})
