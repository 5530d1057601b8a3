import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { ShortLivedCache, ColdCache } from '../../src/ledger/segment/cold-cache.ts'
import { type EventFilter, NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { readEvents } from '../../src/ledger/reader.ts'
import { SegmentDamagedError } from '../../src/ledger/segment/segment-reader.ts'
import { listSegments, type Segment } from '../../src/ledger/segment/segment-store.ts'
import { type Download, openDownload } from '../../src/outlet/export/download.ts'
import { findExportJob } from '../../src/outlet/export/job/export-job-store.ts'
import type { ExportJob } from '../../src/outlet/export/job/export-job.ts'
import { EXPORT_TIMEOUTS as timeouts } from '../../src/outlet/export/export-timeouts.ts'
import { createExportJob, type ExportRequest } from '../../src/outlet/export/exporter.ts'
import { FairSemaphore } from '../../src/platform/scheduling/fair-semaphore.ts'
import { systemClock as clock } from '../../src/platform/time/clock.ts'
import { assertId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { ObjectStore } from '../../src/platform/object-store/object-store.ts'
import { StorageError } from '../../src/platform/object-store/storage-error.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { makeExport, storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const SEMAPHORE_LIMITS = { waitingMax: 100, waitingPerCompanyMax: 100 }

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { database, archive } = annals.app
const logger = createLogger('silent')
const audit = createServiceAudit(clock)

const START_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
/** As many events as three row groups contain. */
const ROWS = 7_500
const ROWS_PER_GROUP = 2_500
const TIMES = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }

/** Stores events one minute apart, starting at the nth minute, and archives everything. */
async function archiveEvents(key: string, { count, from = 0 }: { count: number; from?: number }) {
  const events = Array.from({ length: count }, (_, index) => ({
    category: index % 2 === 0 ? 'even' : 'odd',
    action: `action ${from + index}`,
    timestamp: new Date(START_MS + (from + index) * MINUTE_MS).toISOString(),
    metadata: { nth: from + index },
  }))
  await storeEvents(annals, key, events)
  assert.equal((await archiveAll(annals)).failed, 0)
}

async function segmentsOf({ workspace }: CreatedCompany): Promise<Segment[]> {
  const run = { workspaceId: workspace.id, fromSeq: 1, toSeq: Number.MAX_SAFE_INTEGER }
  return await listSegments(database.db, { ...run, limit: 100 })
}

/** A workspace with one file of three row groups. */
async function createThreeGroups() {
  const tenant = await annals.createCompany()
  await archiveEvents(tenant.workspaceKey, { count: ROWS })
  const [segment] = await segmentsOf(tenant)
  assert(segment)
  return { tenant, segment, file: join(new URL(annals.archiveUrl).pathname, segment.objectKey) }
}

/** A workspace with files of fifty events each. */
async function createFiles(files: number): Promise<CreatedCompany> {
  const tenant = await annals.createCompany()
  for (let nth = 0; nth < files; nth += 1) {
    await archiveEvents(tenant.workspaceKey, { count: 50, from: nth * 50 })
  }
  assert.equal((await segmentsOf(tenant)).length, files)
  return tenant
}

async function readSeqs(
  { workspace }: CreatedCompany,
  { store = archive, ...filter }: Partial<EventFilter> & { store?: ObjectStore } = {},
): Promise<number[]> {
  const run = { workspaceId: workspace.id, fromSeq: 1, toSeq: ROWS }
  const seqs: number[] = []
  for await (const events of readEvents(
    { database, archive: store },
    run,
    { ...NO_FILTER, ...filter },
    () => ({ rows: 1_000, bytes: Infinity }),
  )) {
    assert(Array.isArray(events))
    assert(events.length <= 1_000)
    seqs.push(...events.map(({ seq }) => seq))
  }
  return seqs
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

/** The archive, with each range read recorded. A test can override its operations. */
function watched(other: Partial<ObjectStore> = {}): { store: ObjectStore; parts: string[] } {
  const parts: string[] = []
  const readRange: ObjectStore['readRange'] = async (key, start, end) => {
    parts.push(`${key} from ${start}`)
    return await { ...archive, ...other }.readRange(key, start, end)
  }
  return { store: { ...archive, ...other, readRange }, parts }
}

async function jobOf(tenant: CreatedCompany, options: object = {}): Promise<ExportJob> {
  const body = { source: 'HOT_AND_ARCHIVED', filters: TIMES, ...options }
  return await readAgain(tenant, await makeExport(annals, tenant.workspaceKey, body))
}

async function readAgain({ company }: CreatedCompany, id: string): Promise<ExportJob> {
  const owner = { companyId: company.id, workspaceId: null }
  const job = await findExportJob(database.db, owner, assertId(id))
  assert(job)
  return job
}

async function open(
  job: ExportJob,
  store: ObjectStore,
  {
    semaphore = new FairSemaphore({ ...SEMAPHORE_LIMITS, permitsMax: 6 }),
    cache = new ColdCache(),
  } = {},
): Promise<Download> {
  const stop = new AbortController()
  const terms = { stop, semaphore, coldSemaphore: semaphore, cache, bytesMax: Infinity }
  return await openDownload(
    { database, archive: store, clock, logger, timeouts, audit },
    job,
    terms,
  )
}

async function downloadAll(...terms: Parameters<typeof open>): Promise<string> {
  await using download = await open(...terms)
  return await takeAll(download)
}

async function takeAll(download: Download): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of download.chunks()) hash.update(chunk)
  const { sha256 } = await download.finish()
  assert.equal(hash.digest('hex'), sha256)
  return sha256
}

/** For tests that leave the file as it was. */
const intact = await createThreeGroups()

test('an export of a few hours reads only their part of a file', async () => {
  const { tenant } = intact
  const { store, parts } = watched({ read: () => Promise.reject(new Error('not the whole file')) })
  const hoursAt = (minute: number) => ({
    fromMs: START_MS + minute * MINUTE_MS,
    toMs: START_MS + (minute + 120) * MINUTE_MS,
  })
  assert.deepEqual(await readSeqs(tenant, { store, ...hoursAt(3_000) }), numbers(3_001, 3_120))
  assert.equal(new Set(parts).size, 2, 'the footer, and one of three row groups')
  assert.deepEqual(await readSeqs(tenant, { store, ...hoursAt(2_440) }), numbers(2_441, 2_560))
  assert.equal(new Set(parts).size, 3, 'the footer, and two of three row groups')
  const before = parts.length
  assert.deepEqual(await readSeqs(tenant, { store, ...hoursAt(9_000) }), [])
  assert.equal(parts.length, before, 'nothing, because the catalog has its times')
})

test('detects a flipped byte in each part that is read, and ignores one in other parts', async () => {
  const { tenant, file, segment } = intact
  const bytes = readFileSync(file)
  using restored = new DisposableStack()
  restored.defer(() => writeFileSync(file, bytes))
  const first = { toMs: START_MS + ROWS_PER_GROUP * MINUTE_MS }
  const withFlipped = async (offset: number, check: () => Promise<void>) => {
    const flipped = Buffer.from(bytes)
    flipped.writeUInt8(flipped.readUInt8(offset) ^ 4, offset)
    writeFileSync(file, flipped)
    await check()
  }
  const inFooter = [bytes.length - 1, bytes.length - 6, bytes.length - 200, bytes.length - 2_000]
  for (const offset of [...inFooter, 0, 4, Math.floor(bytes.length * 0.2)]) {
    await withFlipped(offset, async () => {
      await assert.rejects(readSeqs(tenant, first), (error) => {
        assert(error instanceof SegmentDamagedError, String(error))
        assert.match(
          error.message,
          new RegExp(`^The file ${segment.objectKey} \\(events 1 to 7500`),
        )
        return true
      })
    })
  }
  const inLast = Math.floor(bytes.length * 0.8)
  await withFlipped(inLast, async () => {
    assert.deepEqual(await readSeqs(tenant, first), numbers(1, ROWS_PER_GROUP))
    await assert.rejects(readSeqs(tenant), /the bytes of events 5001 to 7500 have changed/)
  })
  restored.dispose()
  assert.equal((await readSeqs(tenant)).length, ROWS)
})

test('does not read a file that was truncated, extended or belongs to another workspace', async () => {
  const { tenant, file } = await createThreeGroups()
  const { file: otherFile, segment: other } = intact
  const bytes = readFileSync(file)
  const wrong: [Buffer, RegExp][] = [
    [bytes.subarray(0, -1), /fewer than the expected \d+ bytes/],
    [bytes.subarray(0, 1_000), /fewer than the expected \d+ bytes/],
    [Buffer.alloc(0), /fewer than the expected \d+ bytes/],
    [Buffer.concat([bytes, Buffer.alloc(1)]), /more than the expected \d+ bytes/],
  ]
  for (const [content, sentence] of wrong) {
    writeFileSync(file, content)
    await assert.rejects(readSeqs(tenant), sentence)
  }
  writeFileSync(file, readFileSync(otherFile))
  await assert.rejects(readSeqs(tenant), SegmentDamagedError)
  // Even if someone with write access to the catalog changes its entry to match.
  const sum = (hex: string | null) => `decode('${hex}', 'hex')`
  await query(
    connection,
    `update segment set bytes = ${other.bytes}, sha256 = ${sum(other.sha256)},
            footer_sha256 = ${sum(other.footerSha256)}
      where workspace_id = '${tenant.workspace.id}'`,
  )
  await assert.rejects(readSeqs(tenant), /not the one in the catalog: its workspaceId/)
})

test('requests a part again that was damaged in transit, without failing the job', async () => {
  const { tenant } = intact
  let isFirst = true
  const { store } = watched({
    readRange: async (key, start, end) => {
      const part = Buffer.from((await archive.readRange(key, start, end)) ?? '')
      if (start === 0 && isFirst) {
        isFirst = false
        part.writeUInt8(part.readUInt8(50) ^ 1, 50)
      }
      return part
    },
  })
  assert.deepEqual(await readSeqs(tenant, { store }), numbers(1, ROWS))
  assert(!isFirst)
})

test('a client gets the same bytes if everything has to be read again', async () => {
  const { tenant } = intact
  // Nothing is cached, as for a slow client whose entries have expired.
  const cache = Object.assign(new ColdCache(), {
    opened: new ShortLivedCache(0),
    groups: new ShortLivedCache(0),
  })
  for (const options of [{}, { filters: { ...TIMES, category: 'odd' } }]) {
    const whole = await downloadAll(await jobOf(tenant, options), archive)
    const slow = watched()
    const again = await downloadAll(await jobOf(tenant, options), slow.store, { cache })
    assert.equal(again, whole)
    assert(slow.parts.length > 2 * new Set(slow.parts).size, 'everything was read several times')
  }
})

test('a company whose export searches many files delays another by at most one file', async () => {
  const searching = await createFiles(12)
  const other = await createFiles(1)
  const [semaphore, cache] = [
    new FairSemaphore({ ...SEMAPHORE_LIMITS, permitsMax: 1 }),
    new ColdCache(),
  ]
  const otherJob = await jobOf(other)
  const otherDownloads: Promise<string>[] = []
  let isOtherDone = false
  const order: string[] = []
  const { store } = watched({
    readRange: async (key, start, end) => {
      const isSearching = key.startsWith(searching.workspace.id)
      order.push(isSearching ? 'searching' : 'other')
      if (order.length === 2) {
        const downloading = downloadAll(otherJob, store, { semaphore, cache })
        otherDownloads.push(downloading.finally(() => (isOtherDone = true)))
      }
      // Wait for the other download, however slow this machine is.
      if (isSearching && otherDownloads.length > 0) {
        await eventually(() => assert(semaphore.isCrowded || isOtherDone))
      }
      return await archive.readRange(key, start, end)
    },
  })
  const nothing = await jobOf(searching, { filters: { ...TIMES, category: 'none' } })
  await downloadAll(nothing, store, { semaphore, cache })
  assert.equal((await Promise.all(otherDownloads)).length, 1)
  const searchedAfter = order.slice(order.lastIndexOf('other')).filter((who) => who !== 'other')
  assert(searchedAfter.length >= 12, `the other download had to wait: ${order.join(' ')}`)
})

test('an abandoned search ends with the next file', async () => {
  const tenant = await createFiles(6)
  const stop = new AbortController()
  const { store, parts } = watched({
    readRange: async (key, start, end) => {
      if (parts.length === 3) stop.abort(new Error('the client disconnected'))
      return await archive.readRange(key, start, end)
    },
  })
  const job = await jobOf(tenant, { filters: { ...TIMES, category: 'none' } })
  const semaphore = new FairSemaphore({ ...SEMAPHORE_LIMITS, permitsMax: 6 })
  const terms = {
    stop,
    semaphore,
    coldSemaphore: semaphore,
    cache: new ColdCache(),
    bytesMax: Infinity,
  }
  await assert.rejects(
    openDownload({ database, archive: store, clock, logger, timeouts, audit }, job, terms),
    /disconnected/,
  )
  assert(parts.length <= 4, `${parts.length} parts were read`)
})

test('does not restore cold files beyond the limit of an export', async () => {
  const tenant = await createFiles(6)
  const countRestores = async (
    options: Partial<Pick<ExportRequest, 'limit' | 'evidence'>> & Partial<EventFilter>,
  ): Promise<number> => {
    const restored = new Set<string>()
    const store: ObjectStore = {
      ...archive,
      stat: async () => ({ bytes: 1, readiness: 'cold' }),
      restore: async (key) => void restored.add(key),
    }
    const job = await jobOf(tenant)
    const { limit = null, evidence = 'NONE', ...filter } = options
    await createExportJob(
      { database, archive: store, clock, logger, timeouts, audit },
      {
        companyId: job.companyId,
        workspaceId: null,
        createdBy: null,
        name: null,
        plan: 'PRO',
        filterWorkspaceId: null,
        workspaceIds: [tenant.workspace.id],
        source: 'HOT_AND_ARCHIVED',
        format: 'JSONL',
        filter: { ...job.filter, ...filter },
        evidence,
        limit,
      },
      (insert) => database.db.transaction().execute(insert),
    )
    return restored.size
  }
  assert.equal(await countRestores({}), 6)
  assert.equal(await countRestores({ limit: 49 }), 1)
  // One more row shows whether the export was truncated.
  assert.equal(await countRestores({ limit: 50 }), 2)
  assert.equal(await countRestores({ limit: 120 }), 3)
  assert.equal(
    await countRestores({ limit: 49, category: 'odd' }),
    6,
    'the number of matches is unknown',
  )
  const firstFile = { toMs: START_MS + MINUTE_MS }
  assert.equal(await countRestores(firstFile), 1)
  assert.equal(await countRestores({ ...firstFile, evidence: 'COMPLETE' }), 6, 'all have stubs')
})

test('a file that turns out to be cold cuts the download and is restored with the following ones, and the job stays open', async () => {
  const tenant = await createFiles(4)
  const [, second, third, fourth] = await segmentsOf(tenant)
  assert(second && third && fourth)
  const behind = [second, third, fourth].map(({ objectKey }) => objectKey)
  const restored: string[] = []
  let isKnown = false
  let isBack = false
  const isCold = (key: string) => !isBack && behind.includes(key)
  const { store } = watched({
    // The storage reports it only when the file is read.
    stat: async (key) => ({ bytes: 1, readiness: isKnown && isCold(key) ? 'cold' : 'ready' }),
    restore: async (key) => void restored.push(key),
    readRange: async (key, start, end) => {
      if (!isCold(key)) return await archive.readRange(key, start, end)
      isKnown = true
      throw new StorageError('It is cold.', { isCold: true })
    },
  })
  const job = await jobOf(tenant)
  {
    await using download = await open(job, store)
    await assert.rejects(takeAll(download), { name: 'SegmentColdError' })
    assert.deepEqual(restored, [], 'the client does not wait for it')
  }
  assert.deepEqual(new Set(restored), new Set(behind))
  assert.equal((await readAgain(tenant, job.id)).status, 'RUNNING')
  isBack = true
  await downloadAll(await readAgain(tenant, job.id), store)
  assert.equal((await readAgain(tenant, job.id)).status, 'SUCCEEDED')
})
