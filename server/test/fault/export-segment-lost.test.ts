import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import { archiveBulk, WHOLE } from '../harness/archive/archived-bulk.ts'
import { assertDownloads, downloadHalf, rerunExport } from '../harness/export/cut-downloads.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { download, makeExport, readJob } from '../harness/export/exports.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
const { key, workspaceIds, reference } = await archiveBulk(annals)

/** The last files of a download: those of the last workspace, in chain order. */
const cwd = new URL(annals.archiveUrl).pathname
const [before = '', last = ''] = globSync(`${workspaceIds.at(-1)}/**/*.parquet`, { cwd })
  .toSorted()
  .map((name) => join(cwd, name))
const whole = readFileSync(last)

const LOSSES = [
  { what: 'removed', errorCode: 'segment_missing', lose: () => rmSync(last) },
  {
    what: 'changed in one bit',
    errorCode: 'segment_damaged',
    lose: () => flipBit(Math.floor(whole.length / 2)),
  },
  {
    what: 'cut to its half',
    errorCode: 'segment_damaged',
    lose: () => writeFileSync(last, whole.subarray(0, whole.length / 2)),
  },
  { what: 'empty', errorCode: 'segment_damaged', lose: () => writeFileSync(last, '') },
  {
    what: 'another file of the archive',
    errorCode: 'segment_damaged',
    lose: () => writeFileSync(last, readFileSync(before)),
  },
]

function flipBit(at: number): void {
  const flipped = Buffer.from(whole)
  flipped.writeUInt8(flipped.readUInt8(at) ^ 1, at)
  writeFileSync(last, flipped)
}

test('a file lost or damaged during a download fails the job, which names it, and a rerun works once it is restored', async () => {
  await repeatFault(async () => {
    for (const { what, errorCode, lose } of LOSSES) {
      const jobId = await makeExport(annals, key, WHOLE)
      const bytes = randomInt(1, 3_000_000)
      const half = await downloadHalf(annals, key, { jobId, reference, bytes })
      lose()
      await half.breaks()
      const job = await eventually(async () => {
        const found = await readJob(annals, key, jobId)
        assert.deepEqual([found.status, found.errorCode], ['FAILED', errorCode], what)
        return found
      })
      assert(job.failureSummary.includes(basename(last)), job.failureSummary)
      assert.match(job.failureSummary, /\(events 101 to 200\)/)
      assert.match(job.retryHint, /operator/)
      const again = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
      assert.deepEqual([again.status, again.json.code], [409, 'export_not_downloadable'])
      writeFileSync(last, whole)
      await assertDownloads(annals, key, await rerunExport(annals, key, jobId), reference)
    }
  })
})

test('no download completes with other rows, whichever bit of a file changes', async () => {
  await repeatFault(async () => {
    const jobId = await makeExport(annals, key, WHOLE)
    flipBit(randomInt(whole.length))
    const received = await download(annals, key, jobId).catch(() => null)
    writeFileSync(last, whole)
    // Bits that don't affect the rows need not be read.
    if (received !== null) assert.equal(received.sha256, reference.sha256)
    const { status } = await eventually(async () => {
      const job = await readJob(annals, key, jobId)
      assert.notEqual(job.status, 'RUNNING')
      return job
    })
    assert.equal(status, received === null ? 'FAILED' : 'SUCCEEDED')
  })
})
