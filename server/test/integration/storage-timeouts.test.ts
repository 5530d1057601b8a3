import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { EXPORT_TIMEOUTS } from '../../src/outlet/export/export-timeouts.ts'
import { archiveNow, WHOLE } from '../harness/archive/archived-bulk.ts'
import { enroll } from '../harness/dashboard/console.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { download, makeExport, readJob, storeEvents } from '../harness/export/exports.ts'
import {
  listenAsMetadata,
  s3Environment,
  S3Server,
  setS3Environment,
} from '../harness/archive/s3-server.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const metadata = await listenAsMetadata()
after(() => metadata.server.close())
setS3Environment(metadata)
const s3 = await S3Server.listen()
after(() => s3[Symbol.asyncDispose]())
// On a slow machine, an archive read can begin hundreds of milliseconds after the download.
const exportTimeouts = {
  ...EXPORT_TIMEOUTS,
  checkMs: 3_000,
  firstChunkMs: 2_000,
  archiveMs: 8_000,
}
const annals = await startTestApp({ env: s3.env, exportTimeouts })
after(() => annals[Symbol.asyncDispose]())
beforeEach(() => {
  s3.mode = 'pass'
  s3.next.stalled = 0
})

const company = await annals.createCompany()
const { workspaceKey: key } = company
await storeEvents(annals, key, [{ category: 'c', action: 'cold' }])
const archived = await archiveNow(annals, s3Environment(s3))
assert.equal(archived.code, 0, archived.stderr)
const owner = await enroll(annals, company, 'OWNER')

/** More downloads than archive reads run at once on a node. */
const CROWD = 8

const downloadOf = (jobId: string) => annals.call('GET', `/v1/exports/${jobId}/download`, { key })

function assertUnavailable({ status, json, headers }: TestResponse): void {
  assert.deepEqual([status, json?.code], [503, 'unavailable'])
  assert.equal(
    json.error,
    'The archive storage is unavailable. Retry after the delay in the Retry-After header.',
  )
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
}

test('a download gets a 503 with Retry-After while the bucket hangs, and works afterwards', async () => {
  const jobId = await makeExport(annals, key, WHOLE)
  s3.mode = 'hang'
  const refusals = Array.from({ length: CROWD }, () => downloadOf(jobId))
  const inDashboard = owner.call('GET', `/dashboard/exports/${jobId}/download`)
  const ready = await annals.call('GET', '/ready')
  assert.equal(ready.status, 200)
  for (const response of await Promise.all([...refusals, inDashboard])) assertUnavailable(response)
  const { status, lastAttempt } = await readJob(annals, key, jobId)
  assert.deepEqual([status, lastAttempt?.code], ['PENDING', 'storage_unavailable'])
  await eventually(() => assert.equal(s3.hanging, 0))
  s3.mode = 'pass'
  assert.equal((await download(annals, key, jobId)).trailers['x-row-count'], '1')
})

test('a download gets a 503 with Retry-After if the bucket hangs after the check', async () => {
  const jobId = await makeExport(annals, key, WHOLE)
  // Checks pass, and the body of each read stalls.
  s3.next.stalled = Infinity
  const refusals = Array.from({ length: CROWD }, () => downloadOf(jobId))
  for (const response of await Promise.all(refusals)) assertUnavailable(response)
  assert.equal((await readJob(annals, key, jobId)).status, 'PENDING')
})

test('a download whose bucket is slow waits for it and is complete', async () => {
  const jobId = await makeExport(annals, key, WHOLE)
  const { promise, resolve } = Promise.withResolvers<void>()
  s3.delay = promise
  const startedAtMs = performance.now()
  const downloading = download(annals, key, jobId)
  await eventually(() => {
    assert(performance.now() - startedAtMs > 1.25 * exportTimeouts.firstChunkMs)
    assert(s3.requests.some(({ method }) => method === 'GET'))
  })
  resolve()
  const { status, trailers } = await downloading
  assert.deepEqual([status, trailers['x-row-count']], [200, '1'])
})

test('a request for an archived event gets a 503 with Retry-After while the bucket hangs', async () => {
  const { text } = await download(annals, key, await makeExport(annals, key, WHOLE))
  const { id } = JSON.parse(text)
  s3.mode = 'hang'
  const asking = annals.call('GET', `/v1/events/${id}`, { key })
  assertUnavailable(await within(2 * exportTimeouts.checkMs, asking))
  await eventually(() => assert.equal(s3.hanging, 0))
})

test('an estimate gets a 503 with Retry-After while the bucket hangs', async () => {
  s3.mode = 'hang'
  assertUnavailable(await owner.call('POST', '/dashboard/exports/preflight', { body: WHOLE }))
})

test('an export can be created while the bucket hangs, and its job says that the archive did not respond', async () => {
  s3.mode = 'hang'
  const jobId = await makeExport(annals, key, WHOLE)
  const { status, lastAttempt } = await readJob(annals, key, jobId)
  assert.deepEqual([status, lastAttempt?.code], ['PENDING', 'storage_unavailable'])
})
