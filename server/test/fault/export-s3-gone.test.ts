import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { archiveBulk, archiveNow, WHOLE } from '../harness/archive/archived-bulk.ts'
import { assertDownloads, downloadHalf } from '../harness/export/cut-downloads.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { makeExport, readJob, storeEvents } from '../harness/export/exports.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { assertChainsHold, countStored } from '../harness/event/ledger.ts'
import {
  listenAsMetadata,
  s3Environment,
  S3Server,
  type SeenRequest,
  setS3Environment,
} from '../harness/archive/s3-server.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const metadata = await listenAsMetadata()
after(() => metadata.server.close())
setS3Environment(metadata)
const s3 = await S3Server.listen()
after(() => s3[Symbol.asyncDispose]())
const annals = await startTestApp({ env: s3.env })
after(() => annals[Symbol.asyncDispose]())
const commands = s3Environment(s3)

const FAULTS = {
  'denied access': () => void (s3.mode = 'deny'),
  'fails on its own': () => void (s3.mode = 'fail'),
  'is overloaded': () => void (s3.mode = 'refuse'),
  'breaks off what it sends': () => void (s3.next.brokenOff = Infinity),
  vanishes: () => s3.vanish(),
}

beforeEach(mend)
async function mend(): Promise<void> {
  s3.mode = 'pass'
  s3.next.brokenOff = 0
  s3.onResponse = () => {}
  await s3.listenAgain()
}

test('a bucket that rejects, fails or vanishes during a download cuts it, and the same bytes follow later', async () => {
  const { key, reference } = await archiveBulk(annals, commands)
  await repeatFault(async () => {
    for (const [name, begin] of Object.entries(FAULTS)) {
      const jobId = await makeExport(annals, key, WHOLE)
      const bytes = randomInt(1, 3_000_000)
      const half = await downloadHalf(annals, key, { jobId, reference, bytes })
      await begin()
      await half.breaks()
      await eventually(async () => {
        const { status, finishedAt, errorCode, lastAttempt } = await readJob(annals, key, jobId)
        assert.deepEqual([status, finishedAt], ['RUNNING', null], name)
        assert.deepEqual([errorCode, lastAttempt?.code], [null, 'storage_unavailable'], name)
      })
      // A client that retries too early gets Retry-After before the first byte.
      const early = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
      assert.deepEqual([early.status, early.json.code], [503, 'unavailable'], name)
      assert.match(early.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      await mend()
      await assertDownloads(annals, key, jobId, reference)
    }
  })
})

/** Two ways in which the bucket becomes unavailable after a file was uploaded. */
const GONE = {
  'is temporarily unavailable (503 SlowDown)': ({ method }: SeenRequest) => {
    if (method === 'PUT') s3.mode = 'refuse'
  },
  "can't be reached (ECONNREFUSED)": ({ method }: SeenRequest) => {
    if (method !== 'PUT') void s3.vanish()
  },
}

test('a bucket that is gone when the archiver reads a file back loses no event', async () => {
  // The audit entries of earlier tests.
  await archiveNow(annals, commands)
  const { workspaceKey: key } = await annals.createCompany()
  await storeEvents(annals, key, [
    { category: 'c', action: 'first' },
    { category: 'c', action: 'second' },
  ])
  const countSegments = async () =>
    (await query(annals.database.connection, 'select object_key from segment')).length
  const before = await countSegments()
  // The first failed run adds an audit entry, and the second one is within its hour.
  const stored = 3
  for (const [sentence, go] of Object.entries(GONE)) {
    let isPut = false
    s3.onResponse = (request) => {
      isPut ||= request.method === 'PUT'
      if (isPut) go(request)
    }
    const { code, stdout, stderr } = await archiveNow(annals, commands)
    assert.deepEqual([code, isPut], [1, true], stdout + stderr)
    assert.match(stdout, /^archived 0 events of 0 workspaces\nFAILED: \d+ workspaces/)
    assert(stderr.includes(sentence), stderr)
    assert.equal(await countStored(annals), stored)
    assert.equal(await countSegments(), before)
    await mend()
  }
  const { code, stdout } = await archiveNow(annals, commands)
  assert.deepEqual([code, stdout], [0, `archived ${stored} events of 2 workspaces\n`])
  assert.equal(await countStored(annals), 0)
  assert.equal(await countSegments(), before + 2)
  await assertChainsHold(annals)
})
