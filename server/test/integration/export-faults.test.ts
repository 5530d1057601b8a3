import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { ApiError } from '../../src/errors.ts'
import { ColdCache } from '../../src/ledger/segment/cold-cache.ts'
import { type Download, openDownload } from '../../src/outlet/export/download.ts'
import { findExportJob } from '../../src/outlet/export/job/export-job-store.ts'
import type { ExportJob } from '../../src/outlet/export/job/export-job.ts'
import { EXPORT_TIMEOUTS as timeouts } from '../../src/outlet/export/export-timeouts.ts'
import { createExportJob, type ExportRequest } from '../../src/outlet/export/exporter.ts'
import { estimateExport } from '../../src/outlet/export/preflight/preflight.ts'
import { FairSemaphore } from '../../src/platform/scheduling/fair-semaphore.ts'
import { systemClock as clock } from '../../src/platform/time/clock.ts'
import { assertId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { ObjectStore } from '../../src/platform/object-store/object-store.ts'
import { StorageError } from '../../src/platform/object-store/storage-error.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { makeExport, readJob, storeEvents } from '../harness/export/exports.ts'
import { noticesOf } from '../harness/dashboard/notices.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const SEMAPHORE_LIMITS = { waitingMax: 100, waitingPerCompanyMax: 100 }

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
const { database } = annals.app
const logger = createLogger('silent')
const audit = createServiceAudit(clock)

const TIMES = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }

/** A storage with the operations that the test defines. Calling any other one fails. */
function storeWith(parts: Partial<ObjectStore>): ObjectStore {
  const unexpected = async () => {
    throw new Error('unexpected call')
  }
  return {
    put: unexpected,
    read: unexpected,
    readTagged: unexpected,
    replace: unexpected,
    readRange: unexpected,
    list: unexpected,
    stat: async () => ({ bytes: 1, readiness: 'ready' }),
    restore: unexpected,
    delete: unexpected,
    [Symbol.asyncDispose]: async () => {},
    ...parts,
  }
}

/** A workspace with a hot event and an archived one, which exists only in the catalog. */
async function createArchived() {
  const tenant = await annals.createCompany()
  const { workspace, workspaceKey: key } = tenant
  await storeEvents(annals, key, [
    { category: 'c', action: 'cold' },
    { category: 'c', action: 'hot' },
  ])
  await query(
    annals.database.connection,
    `insert into segment
     select workspace_id, 1, 1, workspace_id || '/2026-01/0000000000000001-0123456789abcdef.parquet', 1,
            decode(repeat('00', 32), 'hex'), prev_hash, hash, id, ts, ts, received_at, received_at,
            now(), decode(repeat('00', 32), 'hex')
       from event where workspace_id = '${workspace.id}' and seq = 1`,
  )
  const options = { source: 'HOT_AND_ARCHIVED', filters: TIMES }
  const jobId = await makeExport(annals, key, options)
  const find = async (): Promise<ExportJob> => {
    const owner = { companyId: tenant.company.id, workspaceId: null }
    const job = await findExportJob(database.db, owner, assertId(jobId))
    assert(job)
    return job
  }
  return { tenant, key, jobId, find }
}

async function open(job: ExportJob, archive: ObjectStore): Promise<Download> {
  const semaphore = new FairSemaphore({ ...SEMAPHORE_LIMITS, permitsMax: 1 })
  const node = { semaphore, coldSemaphore: semaphore, cache: new ColdCache() }
  const terms = { stop: new AbortController(), bytesMax: Infinity, ...node }
  return await openDownload({ database, archive, clock, logger, timeouts, audit }, job, terms)
}

function refusedWith(code: string) {
  return (error: unknown) => {
    assert(error instanceof ApiError, String(error))
    assert.equal(error.code, code)
    if (error.status === 503) assert((error.retryAfterSeconds ?? 0) >= 30)
    return true
  }
}

test('a missing archive file fails the job, which names it, and the audit log has an entry', async () => {
  const { tenant, key, jobId } = await createArchived()
  const response = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
  assert.deepEqual([response.status, response.json.code], [409, 'export_not_downloadable'])
  const job = await readJob(annals, key, jobId)
  assert.deepEqual([job.status, job.errorCode], ['FAILED', 'segment_missing'])
  assert.match(job.failureSummary, /0000000000000001-0123456789abcdef\.parquet \(events 1 to 1\)/)
  assert.match(job.retryHint, /operator/)
  const entries = await readAudit(annals, tenant)
  const failures = entries.filter(({ action }) => action === 'EXPORT_FAILED')
  assert.deepEqual(failures, [
    {
      action: 'EXPORT_FAILED',
      actor: { id: 'annals', role: 'service' },
      resource: { type: 'export_job', id: jobId },
      metadata: { errorCode: 'segment_missing' },
    },
  ])
  const [notice] = await noticesOf(await signInAs(annals, tenant, 'OWNER'))
  assert.deepEqual([notice?.kind, notice?.link], ['EXPORT_FAILED', `/app/exports?job=${jobId}`])
  assert.match(notice?.message ?? '', /^A \w+ export failed\. Part of the archive is missing\. /)
})

test('a damaged archive file fails the job', async () => {
  const { find } = await createArchived()
  const archive = storeWith({ readRange: async () => Buffer.from('something else') })
  await assert.rejects(open(await find(), archive), refusedWith('export_not_downloadable'))
  const { status, errorCode } = await find()
  assert.deepEqual([status, errorCode], ['FAILED', 'segment_damaged'])
})

test('requests a restore of cold files, and the job stays pending', async () => {
  const { find } = await createArchived()
  const restored: string[] = []
  const cold = storeWith({
    stat: async () => ({ bytes: 1, readiness: 'cold' }),
    restore: async (name) => void restored.push(name),
  })
  await assert.rejects(open(await find(), cold), refusedWith('archive_restoring'))
  assert.equal(restored.length, 1)
  const restoring = storeWith({ stat: async () => ({ bytes: 1, readiness: 'restoring' }) })
  await assert.rejects(open(await find(), restoring), refusedWith('archive_restoring'))
  const late = storeWith({
    readRange: () => Promise.reject(new StorageError('It is cold after all.', { isCold: true })),
  })
  await assert.rejects(open(await find(), late), refusedWith('archive_restoring'))
  const { status, errorCode } = await find()
  assert.deepEqual([status, errorCode], ['PENDING', null])
})

test('an unreachable storage before the first byte gets an error, and the job stays open without details', async () => {
  const { find } = await createArchived()
  const outage = () => Promise.reject(new StorageError('The bucket does not respond.'))
  for (const archive of [storeWith({ stat: outage }), storeWith({ readRange: outage })]) {
    await assert.rejects(open(await find(), archive), refusedWith('unavailable'))
    const job = await find()
    assert.deepEqual(
      [job.status, job.errorCode, job.failureSummary, job.startedAt],
      ['PENDING', null, null, null],
    )
    assert.equal(job.lastAttempt?.code, 'storage_unavailable')
    assert.doesNotMatch(
      job.lastAttempt.summary,
      /bucket/,
      'the location is not revealed to its owner',
    )
  }
})

test('the preflight counts archived rows by the catalog, and says so if filters apply', async () => {
  const { key } = await createArchived()
  const ask = async (filters: object) => {
    const body = { source: 'HOT_AND_ARCHIVED', format: 'JSONL', filters: { ...TIMES, ...filters } }
    const { json } = await annals.call('POST', '/v1/exports/preflight', { key, body })
    return [json.rows, json.isEstimate, json.needsRestore]
  }
  assert.deepEqual(await ask({}), ['2', false, false])
  assert.deepEqual(await ask({ action: 'hot' }), ['2', true, false])
  assert.deepEqual(await ask({ from: '2000-01-01T00:00:00Z', to: '2001-01-01T00:00:00Z' }), [
    '0',
    false,
    false,
  ])
})

test('an unreachable storage fails a preflight, but not the creation of a job', async () => {
  const { companyId, filter, filterWorkspaceId, ranges } = await (await createArchived()).find()
  const archive = storeWith({ stat: () => Promise.reject(new StorageError('No response.')) })
  const deps = { database, archive, clock, logger, timeouts, audit }
  const options: ExportRequest = {
    companyId,
    workspaceId: null,
    createdBy: null,
    name: null,
    plan: 'PRO',
    filterWorkspaceId,
    workspaceIds: ranges.map(({ workspaceId }) => workspaceId),
    source: 'HOT_AND_ARCHIVED',
    format: 'JSONL',
    filter,
    evidence: 'NONE',
    limit: null,
  }
  const { id } = await createExportJob(deps, options, (insert) =>
    database.db.transaction().execute(insert),
  )
  const job = await findExportJob(database.db, { companyId, workspaceId: null }, id)
  assert.deepEqual([job?.status, job?.lastAttempt?.code], ['PENDING', 'storage_unavailable'])
  await assert.rejects(estimateExport(deps, options), refusedWith('unavailable'))
})
