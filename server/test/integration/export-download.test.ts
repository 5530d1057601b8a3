import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { sendDownload, type TransferResult } from '../../src/edge/export/send-download.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  BULK_BYTES,
  download,
  makeExport,
  openAccepted,
  openDownload,
  parseJsonl,
  readJob,
  storeBulk,
  storeEvents,
} from '../harness/export/exports.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

const logLines: string[] = []
const logger = pino({ level: 'info' }, { write: (line) => void logLines.push(line) })
const annals = await startTestApp({ logger })
after(() => annals[Symbol.asyncDispose]())

/** 30 MB, more than the sockets buffer, so that a download waits for its client. */
const BULK_ROWS = 600
const bulk = await annals.createCompany()
const key = bulk.workspaceKey
await storeBulk(annals, key, BULK_ROWS)

const PLAIN = { 'accept-encoding': 'identity' }
const sha256Of = async () => (await download(annals, key, await makeExport(annals, key))).sha256
const bulkSha256 = await sha256Of()

/** How the download of a job ended, according to the log. */
async function endOf(jobId: string, event: 'export.cut' | 'export.downloaded'): Promise<void> {
  await eventually(() => {
    const lines = logLines.map((line) => JSON.parse(line))
    assert(lines.some((line) => line.event === event && line.jobId === jobId))
  })
}

async function assertAllReleased({ app }: TestApp = annals): Promise<void> {
  const { pool } = app.database
  await eventually(() => assert.equal(pool.idleCount, pool.totalCount))
}

function requestText(jobId: string, version = '1.1'): string {
  return `GET /v1/exports/${jobId}/download HTTP/${version}\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
}

test('a client that reads nothing uses no connection and little memory, however long', async () => {
  // Short, so that a download soon exceeds the request timeout.
  const timeouts = { headersMs: 1_000, requestMs: 1_000, checkEveryMs: 20 }
  await using impatient = await startTestApp({ databaseUrl: annals.database.url, timeouts })
  const jobIds = await Promise.all(Array.from({ length: 5 }, () => makeExport(annals, key)))
  const opened = await Promise.all(
    jobIds.map((jobId) => openAccepted(impatient, key, jobId, PLAIN)),
  )
  // Each has filled the socket buffers and waits. Its job shows it within a second or two.
  for (const jobId of jobIds) {
    await eventually(async () => {
      const { rowsExported } = await readJob(annals, key, jobId)
      assert(Number(rowsExported) > 0)
    })
  }
  await assertAllReleased(impatient)
  for (const jobId of jobIds) {
    const { rowsExported } = await readJob(annals, key, jobId)
    assert(Number(rowsExported) * BULK_BYTES < 20_000_000, `${rowsExported} rows were sent`)
  }
  // An incomplete request is cut at the request timeout. By then the downloads are older.
  await using slow = new RawConnection(impatient.url)
  slow.send('GET /health HTTP/1.1\r\n')
  await slow.closed()
  for (const { rest } of opened) assert.equal((await rest()).sha256, bulkSha256)
})

test('a client that disconnects stops the reading, and a new download of the job is complete', async () => {
  const jobId = await makeExport(annals, key)
  for (const bytes of [0, 1, 100_000, 5_000_000, 20_000_000]) {
    const { response, leave } = await openDownload(annals, key, jobId, PLAIN)
    let seen = 0
    while (seen < bytes) {
      const chunk: Buffer | null = response.read()
      if (chunk === null) await once(response, 'readable')
      else seen += chunk.length
    }
    logLines.length = 0
    leave()
    await endOf(jobId, 'export.cut')
    await assertAllReleased()
    const { status, finishedAt, errorCode } = await readJob(annals, key, jobId)
    assert.deepEqual([status, finishedAt, errorCode], ['RUNNING', null, null])
  }
  const { sha256, trailers } = await download(annals, key, jobId)
  assert.equal(sha256, bulkSha256)
  assert.equal(trailers['x-row-count'], String(BULK_ROWS))
  assert.equal((await readJob(annals, key, jobId)).status, 'SUCCEEDED')
})

test('two concurrent downloads both succeed, and the first that ends completes the job', async () => {
  const jobId = await makeExport(annals, key)
  const late = await openDownload(annals, key, jobId, PLAIN)
  const early = await download(annals, key, jobId, { 'accept-encoding': 'gzip' })
  assert.equal(early.trailers['x-content-sha256'], bulkSha256)
  const before = await readJob(annals, key, jobId)
  assert.equal(before.status, 'SUCCEEDED')
  // No third download can start, and the end of the job doesn't interrupt the running one.
  const third = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
  assert.deepEqual([third.status, third.json.code], [409, 'export_not_downloadable'])
  const received = await late.rest()
  assert.equal(received.sha256, bulkSha256)
  assert.equal(received.trailers['x-content-sha256'], bulkSha256)
  assert.deepEqual(await readJob(annals, key, jobId), before)
})

test('canceling cuts a download, even of a client that reads nothing', async () => {
  const jobId = await makeExport(annals, key)
  // A response that is never read fills the buffers, like a client that hangs.
  const stalled = await openAccepted(annals, key, jobId, PLAIN)
  const reading = await openAccepted(annals, key, jobId, PLAIN)
  await eventually(async () => {
    const { rowsExported } = await readJob(annals, key, jobId)
    assert(Number(rowsExported) > 0)
  })
  logLines.length = 0
  const { status, json } = await annals.call('POST', `/v1/exports/${jobId}/cancel`, { key })
  assert.deepEqual([status, json], [200, { id: jobId, status: 'CANCELED' }])
  await eventually(() => {
    assert.equal(logLines.filter((line) => line.includes('export.cut')).length, 2)
  })
  await assert.rejects(reading.rest())
  stalled.leave()
  const job = await readJob(annals, key, jobId)
  assert.deepEqual([job.status, job.errorCode], ['CANCELED', 'canceled'])
  const again = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
  assert.deepEqual([again.status, again.json.code], [409, 'export_not_downloadable'])
})

test('a database that fails during a download cuts the connection', async () => {
  await using proxy = await PgProxy.listen(annals.database.connection)
  const databaseUrl = proxy.urlTo(annals.database.connection)
  await using shaky = await startTestApp({ databaseUrl })
  const jobId = await makeExport(shaky, key)
  await using connection = new RawConnection(shaky.url)
  connection.pause()
  connection.send(requestText(jobId))
  await eventually(async () => {
    const { rowsExported } = await readJob(annals, key, jobId)
    assert(Number(rowsExported) > 0)
  })
  proxy.mode = 'refuse'
  connection.resume()
  const received = await connection.closed()
  assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
  assert(received.length < BULK_ROWS * BULK_BYTES)
  assert.doesNotMatch(received.slice(-100), /\r\n0\r\n/)
  proxy.mode = 'pass'
  assert.equal((await readJob(annals, key, jobId)).status, 'RUNNING')
  assert.equal((await download(annals, key, jobId)).sha256, bulkSha256)
})

test('a chain with a gap is never sent as a complete file', async () => {
  const { workspace, workspaceKey } = await annals.createCompany()
  const events = Array.from({ length: 1_000 }, (_, index) => ({
    category: 'c',
    action: `${index}`,
  }))
  await storeEvents(annals, workspaceKey, events)
  const variants = [PLAIN, { 'accept-encoding': 'gzip' }]
  const jobIds = await Promise.all(variants.map(() => makeExport(annals, workspaceKey)))
  const gap = `delete from event where workspace_id = '${workspace.id}' and seq = 900`
  await query(annals.database.connection, gap)
  for (const [index, headers] of variants.entries()) {
    const jobId = jobIds[index] ?? ''
    const { rest } = await openDownload(annals, workspaceKey, jobId, headers)
    await assert.rejects(rest())
    await eventually(async () => {
      const { status, errorCode } = await readJob(annals, workspaceKey, jobId)
      assert.deepEqual([status, errorCode], ['FAILED', 'internal'])
    })
  }
})

test('an HTTP/1.0 client gets the same bytes until the connection closes', async () => {
  const { workspaceKey } = await annals.createCompany()
  await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'a' }])
  const jobId = await makeExport(annals, workspaceKey)
  await using connection = new RawConnection(annals.url)
  connection.send(requestText(jobId, '1.0').replace(key, workspaceKey))
  const received = await connection.closed()
  const [head = '', body = ''] = received.split('\r\n\r\n')
  assert.doesNotMatch(head, /transfer-encoding|trailer/i)
  assert.equal(parseJsonl(body).length, 1)
  assert.equal((await readJob(annals, workspaceKey, jobId)).status, 'SUCCEEDED')
})

test('HEAD does not start a run', async () => {
  const jobId = await makeExport(annals, key)
  const { status, headers } = await fetch(`${annals.url}/v1/exports/${jobId}/download`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${key}` },
  })
  assert.deepEqual([status, headers.get('allow')], [405, 'GET'])
  assert.equal((await readJob(annals, key, jobId)).status, 'PENDING')
})

test('limits a company to fifty downloads at once, without affecting others', async () => {
  const jobId = await makeExport(annals, key)
  const opened = await Promise.all(
    Array.from({ length: 50 }, () => openAccepted(annals, key, jobId, PLAIN)),
  )
  const refused = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
  assert.deepEqual([refused.status, refused.json.code], [503, 'overloaded'])
  assert.equal(refused.headers.get('retry-after'), '10')
  const other = await annals.createCompany()
  const otherJob = await makeExport(annals, other.workspaceKey)
  assert.equal((await download(annals, other.workspaceKey, otherJob)).status, 200)
  for (const { leave } of opened) leave()
  await eventually(async () => {
    const { response, leave } = await openDownload(annals, key, jobId, PLAIN)
    leave()
    assert.equal(response.statusCode, 200)
  })
})

test('the downloads of a company leave reads of the database to other companies', async () => {
  const [hog, victim] = [await annals.createCompany(), await annals.createCompany()]
  for (const { workspaceKey } of [hog, victim]) {
    await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'a' }])
  }
  const jobs: [string, string][] = [
    [victim.workspaceKey, await makeExport(annals, victim.workspaceKey)],
  ]
  for (let nth = 0; nth < 8; nth += 1) {
    jobs.unshift([hog.workspaceKey, await makeExport(annals, hog.workspaceKey)])
  }
  const [own, others] = [jobs.slice(-1), jobs.slice(0, -1)]
  const start = (some: typeof jobs) => some.map(([key, jobId]) => download(annals, key, jobId))
  const waiting: ReturnType<typeof start> = []
  const assertReads = (count: number) =>
    eventually(async () => {
      const [row] = await query(
        annals.database.connection,
        `select count(*)::int as count from pg_locks join pg_stat_activity using (pid)
          where not granted and relation = 'event'::regclass
            and query like 'copy%'`,
      )
      assert.equal(row?.['count'], count)
    })
  await asOwner(annals, (db) =>
    db.transaction().execute(async (trx) => {
      await sql`lock table event in access exclusive mode`.execute(trx)
      waiting.push(...start(others))
      await assertReads(4)
      waiting.push(...start(own))
      await assertReads(5)
    }),
  )
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 200)
})

test('a service that stops cuts slow downloads, and the job can be downloaded elsewhere', async () => {
  const jobId = await makeExport(annals, key)
  const stopping = await startTestApp({ databaseUrl: annals.database.url })
  const { rest } = await openDownload(stopping, key, jobId, PLAIN)
  await stopping[Symbol.asyncDispose]()
  await assert.rejects(rest())
  assert.equal((await download(annals, key, jobId)).sha256, bulkSha256)
})

test('cuts a client that reads nothing for too long', async () => {
  const { signal } = new AbortController()
  const block = Buffer.alloc(1_000_000)
  async function* chunks() {
    for (let count = 0; count < 100; count++) yield block
  }
  const finish = async () => ({})
  const ended = Promise.withResolvers<TransferResult>()
  const server = createServer((_request, response) => {
    response.flushHeaders()
    const sending = sendDownload(
      response,
      { chunks, finish, signal },
      { isGzip: false, stallMsMax: 50 },
    )
    sending.then(ended.resolve, ended.reject)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  await using connection = new RawConnection(`http://127.0.0.1:${address.port}`)
  connection.pause()
  connection.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.equal((await ended.promise).kind, 'cut')
  server.close()
})
