import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { newId } from '../../src/platform/id.ts'
import {
  OBJECT_BYTES_MAX,
  type ObjectStore,
  StorageError,
} from '../../src/platform/object-store/object-store.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { TurnClock } from '../harness/timing/eventually.ts'
import { listenAsMetadata, S3Server, setS3Environment } from '../harness/archive/s3-server.ts'

const QUICK = { connectMsMax: 5_000, requestMsMax: 1_500, totalMsMax: 10_000, attemptsMax: 2 }
const BYTES = Buffer.from(Uint32Array.from({ length: 500_000 }, (_, at) => at * 8 + 5).buffer)

const metadata = await listenAsMetadata()
after(() => metadata.server.close())
setS3Environment(metadata)

for (const kind of ['folder', 'S3'] as const) {
  suite(`a store in ${kind === 'folder' ? 'a folder' : 'S3'}`, () => {
    test('reads any part of an object, up to its end', async () => {
      await using stack = new AsyncDisposableStack()
      const store = await openStore(stack, kind)
      const key = newKey()
      await store.put(key, BYTES)
      const size = BYTES.length
      for (const [start, end] of [
        [0, 2],
        [0, size],
        [0, size + 1],
        [12_345, 1_023_456],
        [size - 1, size],
        [size - 1_000, size + 1_000],
        [size, size + 1],
        [size + 1_000, size + 2_000],
      ] as const) {
        const part = await store.readRange(key, start, end)
        assert(part?.equals(BYTES.subarray(start, end)), `${start} to ${end}`)
      }
    })

    test('a part of a missing object is null', async () => {
      await using stack = new AsyncDisposableStack()
      const store = await openStore(stack, kind)
      assert.equal(await store.readRange(newKey(), 0, 10), null)
    })

    test('rejects an invalid range', async () => {
      await using stack = new AsyncDisposableStack()
      const store = await openStore(stack, kind)
      for (const [start, end] of [
        [-1, 1],
        [1, 1],
        [0, OBJECT_BYTES_MAX + 1],
      ] as const) {
        await assert.rejects(store.readRange(newKey(), start, end), /has its bounds/)
      }
    })
  })
}

test('reports a missing archive folder as a StorageError, not as an empty archive', async () => {
  const folder = await mkdtempDisposable(join(tmpdir(), 'annals-test-'))
  await using store = await openFolder(folder.path)
  await folder.remove()
  await assertStorageError(store.readRange(newKey(), 0, 1), /is missing\. Check/)
})

suite('S3', () => {
  test('rejects a part of a cold object as cold', async () => {
    await using stack = new AsyncDisposableStack()
    const { s3, store, key } = await openWithObject(stack)
    s3.freeze(key, 'GLACIER')
    const failure = await assertStorageError(store.readRange(key, 5, 10), /cold/)
    assert.equal(failure.isCold, true)
    await store.restore(key)
    assert.equal((await assertStorageError(store.readRange(key, 5, 10), /cold/)).isCold, true)
    s3.finishRestore(key)
    assert((await store.readRange(key, 5, 10))?.equals(BYTES.subarray(5, 10)))
  })

  test('retries a server that rejects or disconnects temporarily', async () => {
    await using stack = new AsyncDisposableStack()
    const { s3, store, key } = await openWithObject(stack)
    for (const fault of ['refused', 'hungUp'] as const) {
      s3.next[fault] = 1
      assert((await store.readRange(key, 7, 70))?.equals(BYTES.subarray(7, 70)), fault)
      assert.equal(s3.next[fault], 0)
    }
  })

  test('retries a part that breaks off or stalls, and never returns it', async () => {
    await using stack = new AsyncDisposableStack()
    const { s3, store, key } = await openWithObject(stack)
    const [start, end] = [100_000, 1_100_000]
    for (const fault of ['brokenOff', 'stalled'] as const) {
      s3.next[fault] = 1
      const part = await store.readRange(key, start, end)
      assert(part?.equals(BYTES.subarray(start, end)), fault)
      assert.equal(s3.next[fault], 0)
      s3.next[fault] = 99
      await assertStorageError(store.readRange(key, start, end))
      s3.next[fault] = 0
    }
  })

  test('a server that rejects, hangs, is gone or lacks the bucket is a StorageError within the timeout', async () => {
    await using stack = new AsyncDisposableStack()
    const { s3, store, key } = await openWithObject(stack)
    using clock = new TurnClock()
    const elsewhere = stack.use(await openS3('s3://elsewhere', s3))
    await assertStorageError(elsewhere.readRange(key, 0, 1), /bucket .* does not exist/)
    s3.mode = 'refuse'
    await assertStorageError(store.readRange(key, 0, 1), /is temporarily unavailable \(503 /)
    s3.mode = 'hang'
    await assertStorageError(store.readRange(key, 0, 1), /did not respond in time/)
    await s3.vanish()
    await assertStorageError(store.readRange(key, 0, 1), /can't be reached/)
    assert(clock.ms < 20_000)
  })
})

async function openStore(stack: AsyncDisposableStack, kind: 'folder' | 'S3'): Promise<ObjectStore> {
  if (kind === 'S3') return (await openWithObject(stack)).store
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-test-')))
  return stack.use(await openFolder(folder.path))
}

async function openWithObject(stack: AsyncDisposableStack) {
  const s3 = stack.use(await S3Server.listen())
  const store = stack.use(await openS3(`s3://${s3.bucket}`, s3))
  const key = newKey()
  await store.put(key, BYTES)
  return { s3, store, key }
}

async function openFolder(path: string): Promise<ObjectStore> {
  return await openObjectStore(pathToFileURL(path).href, { s3Endpoint: null, s3Region: null })
}

async function openS3(url: string, { endpoint }: S3Server): Promise<ObjectStore> {
  return await openObjectStore(url, { s3Endpoint: endpoint, s3Region: null, s3Limits: QUICK })
}

function newKey(): string {
  return `${newId()}/2026-01/0000000000000001-0123456789abcdef.parquet`
}

async function assertStorageError(
  call: Promise<unknown>,
  sentence = /^[A-Za-z].*\.$/,
): Promise<StorageError> {
  const failure = await call.then(
    () => assert.fail('it worked'),
    (error: unknown) => error,
  )
  assert(failure instanceof StorageError, String(failure))
  assert.match(failure.message, sentence)
  return failure
}
