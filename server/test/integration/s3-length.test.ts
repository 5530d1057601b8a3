import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { StorageError } from '../../src/platform/object-store/storage-error.ts'
import { S3Server, setS3Environment, listenAsMetadata } from '../harness/archive/s3-server.ts'

const metadata = await listenAsMetadata()
after(() => metadata.server.close())

test('reads an object without a given length, but no more than requested', async () => {
  setS3Environment(metadata)
  await using s3 = await S3Server.listen()
  const options = { s3Endpoint: s3.endpoint, s3Region: null }
  await using store = await openObjectStore(`s3://${s3.bucket}/`, options)
  const key = `${newId()}/2026-01/0000000000000001-0123456789abcdef.parquet`
  const bytes = randomBytes(200_000)
  await store.put(key, bytes)
  s3.next.chunked = 2
  assert((await store.read(key))?.equals(bytes))
  assert((await store.readRange(key, 1_000, 2_000))?.equals(bytes.subarray(1_000, 2_000)))
  assert.equal(s3.next.chunked, 0)
  s3.next.endless = 1
  await assert.rejects(
    store.readRange(key, 1_000, 2_000),
    (error) => error instanceof StorageError && /larger than \d+ bytes/.test(error.message),
  )
  assert.equal(s3.next.endless, 0)
})
