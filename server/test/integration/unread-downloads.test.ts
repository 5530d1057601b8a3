import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DOWNLOAD_LIMITS } from '../../src/edge/export/download-slots.ts'
import { EXPORT_TIMEOUTS } from '../../src/outlet/export/export-timeouts.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { readBytes } from '../harness/export/cut-downloads.ts'
import {
  download,
  makeExport,
  openAccepted,
  openDownload,
  readJob,
  storeBulk,
} from '../harness/export/exports.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'

const COMPANIES = 4
/** The companies together reach the limit of the node. The long version uses that of the service. */
const DOWNLOADS_EACH = rounds(10, DOWNLOAD_LIMITS.perCompanyMax)
const annals = await startTestApp({
  downloadLimits: { downloadsMax: COMPANIES * DOWNLOADS_EACH, perCompanyMax: DOWNLOADS_EACH },
  env: { ANNALS_RATE_LIMITS: 'off' },
  exportTimeouts: { ...EXPORT_TIMEOUTS, unreadMs: 2_000 },
})
after(() => annals[Symbol.asyncDispose]())

/** 8 MB, more than the connection of a client that doesn't read can take. */
const ROWS = 160
/** A client that reads this much at a time can read for as long as the test runs. */
const PIECE_BYTES = 131_072
const READ_ROWS = 4 * ROWS
/** Less than the file, so that its end doesn't free a place. */
const PIECES_MAX = 200

/** A company whose clients open the file and don't read it. */
async function openUnread({ rows = ROWS, count = DOWNLOADS_EACH } = {}) {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'STARTER' })
  await storeBulk(annals, key, rows)
  const jobId = await makeExport(annals, key)
  const opened = await Promise.all(
    Array.from({ length: count }, () => openAccepted(annals, key, jobId)),
  )
  return { key, jobId, opened }
}

test('unread downloads of four companies don’t lock out another company', async () => {
  const first = await openUnread({ rows: READ_ROWS, count: DOWNLOADS_EACH - 1 })
  const attackers = [first]
  while (attackers.length < COMPANIES) attackers.push(await openUnread())
  const { workspaceKey: otherKey } = await annals.createCompany()
  await storeBulk(annals, otherKey, 1)
  const reader = await openAccepted(annals, first.key, first.jobId)
  let pieces = 0
  await eventually(async () => {
    if (pieces < PIECES_MAX) await readBytes(reader.response, PIECE_BYTES)
    pieces += 1
    const jobId = await makeExport(annals, otherKey)
    const { response, rest, leave } = await openDownload(annals, otherKey, jobId)
    if (response.statusCode !== 200) leave()
    assert.equal(response.statusCode, 200)
    assert.equal((await rest()).trailers['x-row-count'], '1')
  })
  for (const { key, jobId } of attackers) {
    assert(['PENDING', 'RUNNING'].includes((await readJob(annals, key, jobId)).status))
  }
  for (const { opened } of attackers) {
    for (const one of opened) one.leave()
  }
  assert.equal((await reader.rest()).trailers['x-row-count'], String(READ_ROWS))
  for (const { key, jobId } of attackers.slice(-1)) {
    assert.equal((await download(annals, key, jobId)).trailers['x-row-count'], String(ROWS))
  }
})
