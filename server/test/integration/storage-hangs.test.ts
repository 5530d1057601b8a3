import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { promisify } from 'node:util'
import { StorageError, stoppable } from '../../src/platform/object-store/object-store.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { listFiles } from '../harness/archive/archive.ts'
import { archiveNow, WHOLE } from '../harness/archive/archived-bulk.ts'
import { eventually, eventuallyWithin, within } from '../harness/timing/eventually.ts'
import {
  download,
  makeExport,
  openDownload,
  readJob,
  storeEvents,
} from '../harness/export/exports.ts'
import {
  listenAsMetadata,
  s3Environment,
  S3Server,
  setS3Environment,
} from '../harness/archive/s3-server.ts'
import { signEvents } from '../harness/proof/proof.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

const metadata = await listenAsMetadata()
after(() => metadata.server.close())
setS3Environment(metadata)
const s3 = await S3Server.listen()
after(() => s3[Symbol.asyncDispose]())
const { env } = s3
const commands = s3Environment(s3)
beforeEach(() => {
  s3.mode = 'pass'
  s3.next.stalled = 0
})

/** The number of concurrent reads per node. */
const TURNS = 6
const FOLDER_COMPANIES = 3

type Archived = { key: string; workspaceId: string }

/** Companies with one archived event and one hot one each. */
async function createArchived(
  annals: TestApp,
  { count, options = {} }: { count: number; options?: Record<string, string> },
): Promise<Archived[]> {
  const companies = await Promise.all(Array.from({ length: count }, () => annals.createCompany()))
  const store = async (action: string) => {
    for (const { workspaceKey } of companies) {
      await storeEvents(annals, workspaceKey, [{ category: 'c', action }])
    }
  }
  await store('cold')
  // If they were signed later, the signer would read archived files while tests count the requests.
  await Promise.all(companies.map(({ workspace }) => signEvents(annals, workspace.id)))
  const { code, stderr } = await archiveNow(annals, options)
  assert.equal(code, 0, stderr)
  await store('hot')
  return companies.map(({ workspace, workspaceKey: key }) => ({ key, workspaceId: workspace.id }))
}

const inFolder = await startTestApp()
after(() => inFolder[Symbol.asyncDispose]())
const [broken, linked, honest] = await createArchived(inFolder, { count: FOLDER_COMPANIES })
assert(broken && linked && honest)
const inBucket = await startTestApp({ env })
after(() => inBucket[Symbol.asyncDispose]())
const [remote] = await createArchived(inBucket, { count: 1, options: commands })
assert(remote)

function fileOf({ workspaceId }: Archived): string {
  const [file] = listFiles(inFolder, workspaceId)
  assert(file)
  return join(new URL(inFolder.archiveUrl).pathname, file)
}

const REPLACEMENTS: Record<string, (path: string) => Promise<unknown>> = {
  'a pipe': (path) => promisify(execFile)('mkfifo', [path]),
  'a folder': (path) => fs.mkdir(path),
  'a link to a device': (path) => fs.symlink('/dev/zero', path),
}

test('an archived file can be a link to a regular file', async () => {
  const path = fileOf(linked)
  await fs.rename(path, `${path}.moved`)
  await fs.symlink(`${path}.moved`, path)
  const jobId = await makeExport(inFolder, linked.key, WHOLE)
  assert.equal((await download(inFolder, linked.key, jobId)).trailers['x-row-count'], '2')
})

test('an archived file that is not a regular file blocks neither other exports nor the shutdown', async () => {
  const { key } = broken
  const path = fileOf(broken)
  for (const [what, replace] of Object.entries(REPLACEMENTS)) {
    await fs.rm(path, { recursive: true })
    await replace(path)
    for (let nth = 0; nth <= TURNS; nth += 1) {
      const jobId = await makeExport(inFolder, key, WHOLE)
      const response = await inFolder.call('GET', `/v1/exports/${jobId}/download`, { key })
      assert.deepEqual([response.status, response.json.code], [503, 'unavailable'], what)
      const { status, lastAttempt } = await readJob(inFolder, key, jobId)
      assert.deepEqual([status, lastAttempt?.code], ['PENDING', 'storage_unavailable'], what)
    }
  }
  const jobId = await makeExport(inFolder, honest.key, WHOLE)
  assert.equal((await download(inFolder, honest.key, jobId)).trailers['x-row-count'], '2')
  await within(5_000, inFolder[Symbol.asyncDispose]())
})

test('a client that disconnects releases its slot while the bucket hangs', async () => {
  const { key } = remote
  const jobId = await makeExport(inBucket, key, WHOLE)
  s3.mode = 'hang'
  const clients = Array.from({ length: 2 * TURNS }, () => {
    const headers = { authorization: `Bearer ${key}` }
    return get(`${inBucket.url}/v1/exports/${jobId}/download`, { agent: false, headers })
  })
  for (const client of clients) client.on('error', () => {})
  await eventually(() => assert(s3.hanging >= clients.length))
  for (const client of clients) client.destroy()
  // Each bucket request is canceled with its client, so that none waits for a connection.
  await eventuallyWithin(3_000, () => assert.equal(s3.hanging, 0))
  s3.mode = 'pass'
  const received = await within(3_000, download(inBucket, key, jobId))
  assert.equal(received.trailers['x-row-count'], '2')
})

test('a bucket that hangs delays no hot export, no shutdown, and no read after it recovers', async () => {
  const { key } = remote
  const hotJob = await makeExport(inBucket, key)
  const hung = []
  // The headers of each response arrive and the body stalls, so hanging reads take every slot.
  s3.next.stalled = Infinity
  for (let nth = 0; nth <= TURNS; nth += 1) {
    const jobId = await makeExport(inBucket, key, WHOLE)
    hung.push(openDownload(inBucket, key, jobId).catch(() => null))
  }
  await eventually(() => assert(s3.requests.some(({ method }) => method === 'GET')))
  const hot = await within(3_000, download(inBucket, key, hotJob))
  assert.equal(hot.trailers['x-row-count'], '1')
  s3.next.stalled = 0
  const late = await makeExport(inBucket, key, WHOLE)
  const received = await download(inBucket, key, late)
  assert.equal(received.trailers['x-row-count'], '2')
  s3.next.stalled = Infinity
  const last = await makeExport(inBucket, key, WHOLE)
  hung.push(openDownload(inBucket, key, last).catch(() => null))
  await within(8_000, inBucket[Symbol.asyncDispose]())
  for (const opened of await Promise.all(hung)) opened?.leave()
})

test('every operation on a bucket that hangs has a deadline and can be aborted', async () => {
  const options = { s3Endpoint: s3.endpoint, s3Region: null }
  const url = `s3://${s3.bucket}/annals`
  const s3Limits = { partMsMax: 300, totalMsMax: 400, requestMsMax: 60_000 }
  await using store = await openObjectStore(url, { ...options, s3Limits })
  await using patient = await openObjectStore(url, options)
  const key =
    '01a1de6c-465a-72cc-a6d9-b29ca0e92743/2026-01/0000000000000001-0123456789abcdef.parquet'
  s3.mode = 'hang'
  const operations = {
    put: (target: typeof store) => target.put(key, Buffer.from('x')),
    read: (target: typeof store) => target.read(key),
    readRange: (target: typeof store) => target.readRange(key, 0, 1),
    stat: (target: typeof store) => target.stat(key),
    restore: (target: typeof store) => target.restore(key),
    delete: (target: typeof store) => target.delete(key),
  }
  for (const [name, operate] of Object.entries(operations)) {
    await within(2_000, assert.rejects(operate(store), StorageError, name))
    const stop = new AbortController()
    const stopped = operate(stoppable(patient, stop.signal, { graceMs: 10 }))
    await eventually(() => assert(s3.hanging > 0))
    stop.abort(new Error('stopping'))
    await assert.rejects(stopped, /stopping/, name)
    await eventually(() => assert.equal(s3.hanging, 0))
  }
})
