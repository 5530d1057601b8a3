import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { DOWNLOAD_LIMITS } from '../../src/edge/export/download-slots.ts'
import {
  assertDownloads,
  readBytes,
  rerunExport,
  downloadReference,
} from '../harness/export/cut-downloads.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  makeExport,
  openAccepted,
  openDownload,
  readJob,
  storeBulk,
} from '../harness/export/exports.ts'
import { repeatFault, rounds } from '../harness/timing/fault-rounds.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

/** A company's share of the node. The long version uses that of the service. */
const DOWNLOADS_MAX = rounds(8, DOWNLOAD_LIMITS.perCompanyMax)
const annals = await startTestApp({
  env: { ANNALS_RATE_LIMITS: 'off' },
  downloadLimits: { ...DOWNLOAD_LIMITS, perCompanyMax: DOWNLOADS_MAX },
})
after(() => annals[Symbol.asyncDispose]())

/** 16 MB, so that a client can stop anywhere in it. */
const ROWS = 320
/** A client that disconnects before this point can't have received everything. */
const LEFT_BYTES_MAX = 3_000_000
const { workspaceKey: key } = await annals.createCompany()
await storeBulk(annals, key, ROWS)
const reference = await downloadReference(annals, key, { rows: ROWS })

/**
 * A download has released everything: its database connections and its slot. To count the slots,
 * this takes all of them: open downloads wait for their client, and a refused one takes none.
 */
async function assertAllReleased(): Promise<void> {
  const { pool } = annals.app.database
  await eventually(() => assert.equal(pool.idleCount, pool.totalCount))
  const jobId = await makeExport(annals, key)
  const taken = await Promise.all(
    Array.from({ length: DOWNLOADS_MAX }, () => openAccepted(annals, key, jobId)),
  )
  const more = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
  assert.deepEqual([more.status, more.json.code], [503, 'overloaded'])
  for (const { leave } of taken) leave()
}

/** The job of a disconnected client stays open, and the next download returns the right bytes. */
async function assertStillThere(jobId: string): Promise<void> {
  const { status, errorCode } = await readJob(annals, key, jobId)
  assert(['PENDING', 'RUNNING'].includes(status), status)
  assert.equal(errorCode, null)
  await assertDownloads(annals, key, jobId, reference)
}

function requestOf(jobId: string): string {
  return `GET /v1/exports/${jobId}/download HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
}

/** Locks the job, so that its downloads wait at their start or before their end. */
async function lockJob(jobId: string): Promise<AsyncDisposable> {
  const client = new Client(annals.database.connection)
  await client.connect()
  await client.query('begin')
  await client.query('select from export_job where id = $1 for update', [jobId])
  return { [Symbol.asyncDispose]: () => client.end() }
}

/** Sends the text and disconnects as soon as it is sent. */
async function sendAndLeave(text: string): Promise<void> {
  const { hostname: host, port } = new URL(annals.url)
  const socket = connect({ host, port: Number(port) })
  await once(socket, 'connect')
  await new Promise((resolve) => socket.write(text, resolve))
  socket.destroy()
}

test('clients that disconnect before the response leave nothing behind', async () => {
  const jobId = await makeExport(annals, key)
  const request = requestOf(jobId)
  await repeatFault(async () => {
    // More than there are slots, so that leaking one per kind would be noticed.
    for (let nth = 0; nth < DOWNLOADS_MAX; nth += 1) {
      await sendAndLeave(request.slice(0, randomInt(1, request.length)))
      await sendAndLeave(request)
    }
    const { pool } = annals.app.database
    await eventually(() => assert.equal(pool.idleCount, pool.totalCount))
    await using _held = await lockJob(jobId)
    await using waiting = new RawConnection(annals.url)
    waiting.send(request)
    await eventually(() => assert.notEqual(pool.idleCount, pool.totalCount))
  })
  await assertAllReleased()
  await assertStillThere(jobId)
})

test('clients that disconnect anywhere in the rows leave nothing behind', async () => {
  const jobId = await makeExport(annals, key)
  await repeatFault(async () => {
    const offsets = Array.from({ length: 12 }, () => randomInt(1, LEFT_BYTES_MAX))
    for (const bytes of [0, 1, ...offsets]) {
      const { response, leave } = await openDownload(annals, key, jobId)
      assert.equal(response.statusCode, 200)
      await readBytes(response, bytes)
      leave()
    }
  })
  await assertAllReleased()
  await assertStillThere(jobId)
})

test('a client that disconnects after every row but before the end can download again', async () => {
  const jobId = await makeExport(annals, key)
  const { response, leave } = await openDownload(annals, key, jobId)
  assert.equal(response.statusCode, 200)
  {
    await using _held = await lockJob(jobId)
    const body = await readBytes(response, reference.body.length)
    assert(body.equals(reference.body))
    assert(!response.complete)
    leave()
  }
  await assertAllReleased()
  // The last bytes were in flight at the disconnect, so the job may have succeeded. The rows stay.
  const { status } = await readJob(annals, key, jobId)
  const openJobId = status === 'SUCCEEDED' ? await rerunExport(annals, key, jobId) : jobId
  await assertStillThere(openJobId)
})
