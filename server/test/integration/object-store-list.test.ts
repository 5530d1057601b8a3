import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { newId } from '../../src/platform/id.ts'
import {
  type ObjectStore,
  stoppable,
  StorageError,
} from '../../src/platform/object-store/object-store.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { openBucket } from '../harness/archive/bucket.ts'
import { failure } from '../harness/archive/s3-server.ts'
import { eventually, within } from '../harness/timing/eventually.ts'

await using stack = new AsyncDisposableStack()
const s3 = await openBucket(stack)
const kept = stack.move()
after(() => kept.disposeAsync())

const FIRST = { cursor: null, limit: 1_000 }
const S3 = { s3Endpoint: s3.endpoint, s3Region: null }

/** An empty store, and what puts an object there without it. */
async function openStore(kind: 'folder' | 'S3') {
  await using opened = new AsyncDisposableStack()
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'annals-list-')))
  const url =
    kind === 'folder' ? pathToFileURL(folder.path).href : `s3://${s3.bucket}/list-${newId()}`
  const store = opened.use(await openObjectStore(url, S3))
  const moved = opened.move()
  return { store, folder: folder.path, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}

async function writeStates(store: ObjectStore, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, () => `signer/${newId()}`)
  for (const key of keys) await store.replace(key, { bytes: Buffer.from('state'), tag: null })
  return keys.toSorted()
}

async function listAll(store: ObjectStore, limit: number): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | null = null
  do {
    const page = await store.list('signer/', { cursor, limit })
    pages.push(page.keys)
    cursor = page.cursor
  } while (cursor !== null)
  return pages
}

for (const kind of ['folder', 'S3'] as const) {
  suite(`listing objects in ${kind === 'folder' ? 'a folder' : 'S3'}`, () => {
    test('returns each key once, in pages of the requested size', async () => {
      await using opened = await openStore(kind)
      const { store } = opened
      assert.deepEqual(await store.list('signer/', FIRST), { keys: [], cursor: null })
      const keys = await writeStates(store, 7)
      await store.put(`annals-archive-${'0'.repeat(32)}`, Buffer.from('marker'))
      const segment = `${newId()}/2026-01/0000000000000001-0123456789abcdef.parquet`
      await store.put(segment, Buffer.from('segment'))
      const pages = await listAll(store, 3)
      assert.deepEqual(
        pages.map((page) => page.length),
        [3, 3, 1],
      )
      assert.deepEqual(pages.flat(), keys)
      assert.deepEqual(await listAll(store, 7), [keys])
      await store.delete(keys[0] ?? '')
      assert.deepEqual((await listAll(store, 1_000)).flat(), keys.slice(1))
    })

    test('throws for a folder that is never listed, or a page without bounds', async () => {
      await using opened = await openStore(kind)
      const { store } = opened
      for (const prefix of ['', '.drafts/', 'signer', '../signer/', `${newId()}/`]) {
        await assert.rejects(store.list(prefix, FIRST), assert.AssertionError, prefix)
      }
      for (const limit of [0, 1_001]) {
        const page = store.list('signer/', { cursor: null, limit })
        await assert.rejects(page, assert.AssertionError)
      }
    })
  })
}

test('lists neither drafts nor what Annals never writes', async () => {
  await using opened = await openStore('folder')
  const { store, folder } = opened
  const keys = await writeStates(store, 1)
  await writeFile(join(folder, '.drafts', 'left'), 'a draft')
  await writeFile(join(folder, 'signer', 'notes.txt'), 'a note')
  await mkdir(join(folder, 'signer', newId()))
  assert.deepEqual(await listAll(store, 1_000), [keys])
})

test('reports a missing folder as a StorageError, not as an empty list', async () => {
  await using opened = await openStore('folder')
  const url = `${pathToFileURL(opened.folder).href}/unmounted`
  await using store = await openObjectStore(url, S3)
  await assert.rejects(store.list('signer/', FIRST), StorageError)
})

test('throws a StorageError if the bucket hangs, refuses the list or cuts it off', async () => {
  await using opened = await openStore('S3')
  const { store } = opened
  await writeStates(store, 3)
  const deny = () => failure(403, 'AccessDenied')
  const cutOff = (token: string) => () => {
    const body = Buffer.from(
      `<ListBucketResult><IsTruncated>true</IsTruncated>${token}</ListBucketResult>`,
    )
    return { status: 200, headers: { 'content-type': 'application/xml' }, body }
  }
  try {
    s3.intercept = deny
    const denied = { name: 'StorageError', isDenied: true }
    await assert.rejects(store.list('signer/', FIRST), denied)
    s3.intercept = cutOff('')
    await assert.rejects(store.list('signer/', FIRST), /without a valid continuation token/)
    s3.intercept = cutOff('<NextContinuationToken>same</NextContinuationToken>')
    const page = store.list('signer/', { cursor: 'same', limit: 1 })
    await assert.rejects(page, /without a valid continuation token/)
  } finally {
    s3.intercept = () => null
  }
  const url = `s3://${s3.bucket}/hanging`
  await using hurried = await openObjectStore(url, { ...S3, s3Limits: { partMsMax: 300 } })
  s3.mode = 'hang'
  try {
    await within(2_000, assert.rejects(hurried.list('signer/', FIRST), StorageError))
    await eventually(() => assert.equal(s3.hanging, 0))
    const stop = new AbortController()
    const stopped = stoppable(store, stop.signal, { graceMs: 10 }).list('signer/', FIRST)
    await eventually(() => assert(s3.hanging > 0))
    stop.abort(new Error('stopping'))
    await assert.rejects(stopped, /stopping/)
    await eventually(() => assert.equal(s3.hanging, 0))
  } finally {
    s3.mode = 'pass'
  }
})
