import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { StorageError } from '../../src/platform/object-store/object-store.ts'
import { createExportJob } from '../../src/outlet/export/exporter.ts'
import { EXPORT_TIMEOUTS as timeouts } from '../../src/outlet/export/export-timeouts.ts'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { updatePlan } from '../../src/tenancy/company-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { type CheckedChain, checkCompleteFile } from '../harness/export/complete-file.ts'
import { enroll } from '../harness/dashboard/console.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import {
  download,
  type ExportRequest,
  exportRows,
  makeExport,
  openDownload,
  readJob,
  storeBulk,
  storeEvents,
} from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
// In the past, because archiving needs events that were received before the real time.
const { clock, advance } = manualClock(Date.now() - 2 * HOUR_MS)
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { database, archive } = annals.app

const ALL_TIME = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
const TRACE_ID = '4482c0574636831e7be7dbe980115ac3'
const timeOf = (ms: number) => new Date(ms).toISOString()

/** Events that differ in every field that filters compare. */
function createEvents(count: number, { projectId }: { projectId: string }) {
  return Array.from({ length: count }, (_, nth) => ({
    category: `category ${nth % 3}`,
    action: `"action"\t${nth % 4}`,
    timestamp: timeOf(clock() - nth * 60_000),
    ...(nth % 2 === 0 && { projectId, actor: { id: `u-${nth % 5}`, role: 'admin' } }),
    ...(nth % 3 === 0 && { resource: { type: 'invoice', id: `inv-${nth % 5}` } }),
    ...(nth % 4 !== 3 && { metadata: { ip: `192.0.2.${nth % 5}`, note: 'ü'.repeat(nth) } }),
  }))
}

async function createTenant(count: number): Promise<CreatedCompany> {
  const tenant = await annals.createCompany()
  const { id: projectId } = tenant.project
  await storeEvents(annals, tenant.workspaceKey, createEvents(count, { projectId }))
  return tenant
}

type CompleteFile = {
  jobId: string
  sha256: string
  text: string
  chains: CheckedChain[]
}

/** Downloads a complete export and checks it, the job and the trailers. */
async function completeFile(key: string, options: ExportRequest = {}): Promise<CompleteFile> {
  const jobId = await makeExport(annals, key, { ...options, evidence: 'COMPLETE' })
  return await checkedDownload(key, jobId)
}

async function checkedDownload(key: string, jobId: string): Promise<CompleteFile> {
  const { text, trailers, sha256 } = await download(annals, key, jobId)
  const chains = [...checkCompleteFile(text).values()]
  const rows = String(chains.reduce((sum, chain) => sum + chain.rows.length, 0))
  const job = await readJob(annals, key, jobId)
  assert.deepEqual(
    [job.status, job.evidence, job.rowsExported, job.truncated, job.sha256],
    ['SUCCEEDED', 'COMPLETE', rows, false, sha256],
  )
  assert.equal(job.bytes, String(Buffer.byteLength(text)))
  assert.deepEqual([trailers['x-row-count'], trailers['x-content-sha256']], [rows, sha256])
  return { jobId, sha256, text, chains }
}

function onlyChain({ chains }: CompleteFile): CheckedChain {
  const [chain] = chains
  assert(chain && chains.length === 1)
  return chain
}

const COUNT = 240
const shared = await createTenant(COUNT)
await annals.call('POST', '/v1/events', {
  key: shared.workspaceKey,
  body: { category: 'traced', action: 'a' },
  headers: { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` },
})

const PROVABLE: Record<string, Record<string, unknown>> = {
  'no filter': {},
  'a category': { category: 'category 1' },
  'an action': { action: '"action"\t2' },
  'a project': { projectId: shared.project.id },
  'a trace ID': { traceId: TRACE_ID },
  'a workspace': { workspaceId: shared.workspace.id },
  'a period': { from: timeOf(clock() - HOUR_MS), to: timeOf(clock() - 20 * 60_000) },
  'several fields': { category: 'category 1', projectId: shared.project.id, to: timeOf(clock()) },
  'no match': { category: 'none' },
}

for (const [name, filters] of Object.entries(PROVABLE)) {
  test(`a complete export with ${name} has the whole chain, and the same rows as without evidence`, async () => {
    const { workspaceKey: key } = shared
    const chain = onlyChain(await completeFile(key, { filters }))
    assert.deepEqual([chain.firstSeq, chain.lastSeq], [1, COUNT + 1])
    assert.deepEqual(chain.rows, await exportRows(annals, key, { filters }))
    assert.equal(chain.rows.length === 0, name === 'no match')
    assert.equal(chain.stubs.length === 0, ['no filter', 'a workspace'].includes(name))
  })
}

const UNPROVABLE: Record<string, Record<string, unknown>> = {
  'an actor ID': { actorId: 'u-0' },
  'an actor email': { actorEmail: 'x@example.com' },
  'an actor role': { actorRole: 'admin' },
  'a resource type': { resourceType: 'invoice' },
  'a resource ID': { resourceId: 'inv-0' },
  metadata: { metadata: { ip: '192.0.2.1' } },
  'a metadata path': { hasMetadata: ['ip'] },
  text: { q: 'category 1' },
}

for (const [name, filters] of Object.entries(UNPROVABLE)) {
  test(`an export with a filter by ${name} proves membership, and has no stubs`, async () => {
    const { workspaceKey: key } = shared
    const all = { category: 'category 1', ...filters }
    const jobId = await makeExport(annals, key, { filters: all, evidence: 'COMPLETE', limit: 3 })
    const { text } = await download(annals, key, jobId)
    const job = await readJob(annals, key, jobId)
    assert.deepEqual([job.evidence, job.status], ['MEMBERSHIP', 'SUCCEEDED'])
    const without = await makeExport(annals, key, { filters: all, limit: 3 })
    assert.equal(text, (await download(annals, key, without)).text)
    assert.equal((await readJob(annals, key, without)).evidence, 'NONE')
    const body = { source: 'HOT', format: 'JSONL', filters: all, evidence: 'COMPLETE' }
    const { json } = await annals.call('POST', '/v1/exports/preflight', { key, body })
    assert.deepEqual([json.evidence, json.stubs], ['MEMBERSHIP', '0'])
  })
}

test('the lists of values and exclusions of the dashboard can be proven if stubs have their field', async () => {
  const owner = await enroll(annals, shared, 'OWNER')
  const cases: [object, string, number][] = [
    [{ anyOf: ['category:category 0', 'category:category 1'] }, 'COMPLETE', 160],
    [{ not: ['category:category 0', 'action:"action"\t1'] }, 'COMPLETE', 121],
    [{ not: [`projectId:${shared.project.id}`] }, 'COMPLETE', 121],
    [{ anyOf: ['actorId:u-0', 'actorId:u-1'] }, 'MEMBERSHIP', 0],
    [{ not: ['resourceType:invoice'] }, 'MEMBERSHIP', 0],
    [{ category: 'category 1', not: ['actorEmail:x'] }, 'MEMBERSHIP', 0],
  ]
  for (const [filters, evidence, rows] of cases) {
    const body = { source: 'HOT', format: 'JSONL', filters, evidence: 'COMPLETE' }
    const { status, json, text } = await owner.call('POST', '/dashboard/exports', { body })
    assert.equal(status, 201, text)
    assert.equal(json.evidence, evidence, JSON.stringify(filters))
    if (evidence !== 'COMPLETE') continue
    const chain = onlyChain(await checkedDownload(shared.companyKey, json.id))
    assert.equal(chain.rows.length, rows, JSON.stringify(filters))
    assert.equal(chain.rows.length + chain.stubs.length, COUNT + 1)
  }
  const entries = await readAudit(annals, shared)
  const last = entries.findLast(({ action }) => action === 'EXPORT_REQUESTED')
  assert.equal(last?.metadata.evidence, 'MEMBERSHIP')
})

test('the end of the period does not cut the chain', async () => {
  const to = timeOf(clock() - 30 * DAY_MS)
  const chain = onlyChain(await completeFile(shared.workspaceKey, { filters: { to } }))
  assert.deepEqual([chain.rows.length, chain.stubs.length], [0, COUNT + 1])
})

test('refuses an export with more rows and stubs than its limit', async () => {
  const { workspaceKey: key } = shared
  const filters = { category: 'category 1' }
  const body = { source: 'HOT', format: 'JSONL', filters, evidence: 'COMPLETE' }
  const refused = await annals.call('POST', '/v1/exports', { key, body: { ...body, limit: COUNT } })
  assert.deepEqual([refused.status, refused.json.code], [400, 'invalid_request'])
  assert.match(refused.json.error, /241 rows and stubs, and the limit is 240/)
  assert.equal(refused.json.details[0].path, '/evidence')
  const exact = onlyChain(await completeFile(key, { filters, limit: COUNT + 1 }))
  assert.equal(exact.rows.length, COUNT / 3)
  const preflight = async (limit: number) => {
    const all = { ...body, limit }
    const { json } = await annals.call('POST', '/v1/exports/preflight', { key, body: all })
    return [json.rows, json.stubs, json.evidence, json.isCut]
  }
  assert.deepEqual(await preflight(COUNT + 1), ['80', '161', 'COMPLETE', false])
  assert.deepEqual(await preflight(COUNT), ['80', '161', 'COMPLETE', true])
})

// The tests below archive all events, also those above.

test('has the same bytes from the table, from the archive and from both', async () => {
  const tenant = await createTenant(60)
  const { workspaceKey: key } = tenant
  const filters = { ...ALL_TIME, category: 'category 1' }
  const options = { source: 'HOT_AND_ARCHIVED', filters }
  const hot = await completeFile(key, options)
  const again = async (): Promise<CompleteFile> => {
    const path = `/v1/exports/${hot.jobId}/rerun`
    const { status, json, text } = await annals.call('POST', path, { key })
    assert.equal(status, 201, text)
    return await checkedDownload(key, json.jobId)
  }
  assert.equal((await archiveAll(annals)).failed, 0)
  assert.equal((await again()).text, hot.text)
  const { id: projectId } = tenant.project
  await storeEvents(annals, key, createEvents(40, { projectId }))
  const both = await completeFile(key, options)
  assert(both.text.startsWith(hot.text))
  assert.deepEqual(onlyChain(both).lastSeq, 100)
  const archived = onlyChain(await completeFile(key, { ...options, source: 'ARCHIVED' }))
  assert.deepEqual([archived.firstSeq, archived.lastSeq], [1, 60])
  const onlyHot = onlyChain(await completeFile(key, { filters: { category: 'category 1' } }))
  assert.deepEqual([onlyHot.firstSeq, onlyHot.lastSeq], [61, 100])
  assert.deepEqual(
    [...archived.rows, ...onlyHot.rows],
    await exportRows(annals, key, options),
    'the rows of an export without evidence',
  )
})

test('has the chain of each workspace of the company', async () => {
  const tenant = await annals.createCompany({ workspaces: ['One', 'Two', 'Three'] })
  const [one, two] = tenant.workspaces
  assert(one && two)
  const events = (count: number) =>
    Array.from({ length: count }, (_, nth) => ({ category: nth % 2 ? 'odd' : 'even', action: 'a' }))
  await storeEvents(annals, one.workspaceKey, events(20))
  await storeEvents(annals, two.workspaceKey, events(31))
  const filters = { category: 'odd' }
  const { chains } = await completeFile(tenant.companyKey, { filters })
  assert.deepEqual(
    chains.map(({ firstSeq, lastSeq, rows }) => [firstSeq, lastSeq, rows.length]),
    [
      [1, 20, 10],
      [1, 31, 15],
    ],
    'an empty workspace has no lines',
  )
  const named = { ...filters, workspaceId: two.id }
  const only = onlyChain(await completeFile(tenant.companyKey, { filters: named }))
  assert.equal(only.lastSeq, 31)
})

test('starts at the first event that was received at most 24 hours before the start, hot or archived', async () => {
  const tenant = await annals.createCompany()
  const { workspaceKey: key } = tenant
  const receivedMs: number[] = []
  for (let nth = 0; nth < 4; nth += 1) {
    advance(1_000)
    receivedMs.push(clock())
    // As far ahead as the service accepts.
    const timestamp = timeOf(clock() + DAY_MS)
    await storeEvents(annals, key, [{ category: nth % 2 ? 'odd' : 'even', action: 'a', timestamp }])
  }
  const check = async () => {
    for (const [nth, atMs] of receivedMs.entries()) {
      for (const [aheadMs, firstSeq] of [
        [0, nth + 1],
        [1, nth + 2],
      ] as const) {
        const from = timeOf(atMs + DAY_MS + aheadMs)
        const filters = { from, to: ALL_TIME.to, category: 'odd' }
        const options = { source: 'HOT_AND_ARCHIVED', filters }
        const file = await completeFile(key, options)
        if (firstSeq === 5) {
          assert.deepEqual(file.chains, [])
          continue
        }
        const chain = onlyChain(file)
        assert.deepEqual([chain.firstSeq, chain.lastSeq], [firstSeq, 4], from)
        assert.deepEqual(chain.rows, await exportRows(annals, key, options))
      }
    }
  }
  await check()
  assert.equal((await archiveAll(annals)).failed, 0)
  await check()
})

test('starts at a file that cannot be read yet, and still has the whole chain after it', async () => {
  const tenant = await annals.createCompany()
  const { workspaceKey: key } = tenant
  await storeEvents(annals, key, [{ category: 'c', action: 'a' }])
  advance(1_000)
  await storeEvents(annals, key, [{ category: 'c', action: 'a' }])
  const fromMs = clock() + DAY_MS
  assert.equal((await archiveAll(annals)).failed, 0)
  const startWith = async (store: typeof archive): Promise<number | undefined> => {
    const logger = createLogger('silent')
    const audit = createServiceAudit(clock)
    const { ranges } = await createExportJob(
      { database, archive: store, clock, logger, timeouts, audit },
      {
        companyId: tenant.company.id,
        workspaceId: null,
        createdBy: null,
        name: null,
        plan: 'PRO',
        filterWorkspaceId: null,
        workspaceIds: [tenant.workspace.id],
        source: 'HOT_AND_ARCHIVED',
        format: 'JSONL',
        filter: { ...NO_FILTER, fromMs },
        evidence: 'COMPLETE',
        limit: null,
      },
      (insert) => database.db.transaction().execute(insert),
    )
    return ranges[0]?.fromSeq
  }
  assert.equal(await startWith(archive), 2)
  const isCold = { isCold: true }
  const cold = { ...archive, readRange: () => Promise.reject(new StorageError('Cold.', isCold)) }
  assert.equal(await startWith(cold), 1)
})

test('a file that was deleted from the archive fails the job instead of shortening the chain', async () => {
  const tenant = await createTenant(10)
  const { workspaceKey: key } = tenant
  assert.equal((await archiveAll(annals)).failed, 0)
  await storeEvents(annals, key, [{ category: 'c', action: 'a' }])
  assert.equal((await archiveAll(annals)).failed, 0)
  const options = { source: 'HOT_AND_ARCHIVED', filters: ALL_TIME, evidence: 'COMPLETE' }
  const jobId = await makeExport(annals, key, options)
  const { id } = tenant.workspace
  const { connection } = annals.database
  await query(connection, `delete from segment where workspace_id = '${id}' and first_seq = 1`)
  assert.equal((await download(annals, key, jobId)).status, 409)
  const job = await readJob(annals, key, jobId)
  assert.deepEqual([job.status, job.errorCode], ['FAILED', 'segment_missing'])
  assert.match(job.failureSummary, /event 1\b/)
  const later = onlyChain(await completeFile(key, options))
  assert.deepEqual([later.firstSeq, later.lastSeq], [11, 11], 'what the archive still has')
})

test('refuses an export with more rows and stubs than the plan allows', async () => {
  const tenant = await annals.createCompany({ plan: 'STARTER' })
  const { workspaceKey: key, workspace } = tenant
  await storeEvents(annals, key, [{ category: 'c', action: 'a' }])
  const { connection } = annals.database
  /** Stores only the events that a binary search for the start of the hot events reads. */
  const pretend = async (headSeq: number) => {
    const seqs: number[] = []
    for (let high = headSeq + 1; high > 2;) {
      high = Math.floor((1 + high) / 2)
      seqs.push(high)
    }
    await query(
      connection,
      `insert into event select (jsonb_populate_record(e, jsonb_build_object('seq', n))).*
         from event e, unnest(array[${seqs.join()}]) n
        where e.workspace_id = '${workspace.id}' and e.seq = 1
          and not exists (select from event where workspace_id = e.workspace_id and seq = n)`,
    )
    await query(
      connection,
      `update chain_head set seq = ${headSeq} where workspace_id = '${workspace.id}'`,
    )
  }
  const create = () =>
    annals.call('POST', '/v1/exports', {
      key,
      body: {
        source: 'HOT',
        format: 'JSONL',
        filters: { category: 'other' },
        evidence: 'COMPLETE',
      },
    })
  await pretend(50_000)
  const allowed = await create()
  assert.equal(allowed.status, 201, allowed.text)
  await pretend(50_001)
  const refused = await create()
  assert.deepEqual([refused.status, refused.json.code], [400, 'invalid_request'])
  assert.match(refused.json.error, /50001 rows and stubs, and the limit is 50000/)
})

test('a rerun is complete too, and is refused if the plan allows less by then', async () => {
  const tenant = await createTenant(30)
  const { workspaceKey: key, companyKey, company } = tenant
  const filters = { category: 'category 0' }
  const first = await completeFile(key, { filters })
  const rerun = (by: string) => annals.call('POST', `/v1/exports/${first.jobId}/rerun`, { key: by })
  await storeEvents(annals, key, [{ category: 'later', action: 'a' }])
  const { json } = await rerun(key)
  assert.equal((await checkedDownload(key, json.jobId)).sha256, first.sha256)
  await query(
    annals.database.connection,
    `update export_job set ranges = jsonb_set(ranges, '{0,toSeq}', '60000') where id = '${first.jobId}'`,
  )
  await updatePlan(database.db, { companyId: company.id, plan: 'STARTER' })
  // The node caches keys with their plan, and it doesn't know this one yet.
  const refused = await rerun(companyKey)
  assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
  assert.match(refused.json.error, /60000 rows and stubs/)
})

test('a download that was interrupted starts again with the same bytes', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await storeBulk(annals, key, 250)
  const filters = { action: 'number 249' }
  const everything = await makeExport(annals, key, { evidence: 'COMPLETE' })
  const opened = await openDownload(annals, key, everything)
  opened.response.once('data', () => opened.leave())
  await assert.rejects(opened.rest())
  assert.equal((await readJob(annals, key, everything)).status, 'RUNNING')
  const file = await checkedDownload(key, everything)
  assert.equal(onlyChain(file).rows.length, 250)
  const chain = onlyChain(await completeFile(key, { filters }))
  assert.deepEqual([chain.rows.length, chain.stubs.length], [1, 249])
})

test('events of the largest size are in the file, as rows and as stubs', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const blob = 'x'.repeat(250_000)
  const events = Array.from({ length: 60 }, (_, nth) => ({
    category: nth % 20 === 0 ? 'rare' : 'usual',
    action: `number ${nth}`,
    metadata: { blob },
  }))
  await storeEvents(annals, key, events)
  for (const [category, rows] of [
    ['usual', 57],
    ['rare', 3],
  ] as const) {
    const chain = onlyChain(await completeFile(key, { filters: { category } }))
    assert.deepEqual([chain.rows.length, chain.stubs.length], [rows, 60 - rows])
  }
})

test('a template keeps the evidence', async () => {
  const owner = await enroll(annals, shared, 'OWNER')
  const body = { source: 'HOT', format: 'JSONL', evidence: 'COMPLETE' }
  const path = '/dashboard/export-templates'
  const { json } = await owner.call('POST', path, { body: { name: 'Proof', body } })
  assert.deepEqual(json.body, body)
  const run = await owner.call('POST', `${path}/${json.id}/run`)
  assert.deepEqual([run.status, run.json.evidence], [201, 'COMPLETE'])
  const csv = { name: 'CSV', body: { ...body, format: 'CSV' } }
  const refused = await owner.call('POST', path, { body: csv })
  assert.deepEqual([refused.status, refused.json.details[0].path], [400, '/body/evidence'])
})

test('a canceled export sends nothing', async () => {
  const { workspaceKey: key } = shared
  const jobId = await makeExport(annals, key, { evidence: 'COMPLETE' })
  await annals.call('POST', `/v1/exports/${jobId}/cancel`, { key })
  assert.equal((await download(annals, key, jobId)).status, 409)
  assert.equal((await readJob(annals, key, jobId)).evidence, 'COMPLETE')
})

test('refuses evidence with CSV, and evidence that does not exist', async () => {
  const owner = await enroll(annals, shared, 'OWNER')
  const send = (more: object) => {
    const body = { source: 'HOT', format: 'JSONL', ...more }
    return [
      annals.call('POST', '/v1/exports', { key: shared.workspaceKey, body }),
      annals.call('POST', '/v1/exports/preflight', { key: shared.workspaceKey, body }),
      owner.call('POST', '/dashboard/exports', { body }),
    ]
  }
  const csv = { format: 'CSV', evidence: 'COMPLETE' }
  for (const { status, json } of await Promise.all(send(csv))) {
    assert.deepEqual([status, json.code], [400, 'invalid_request'])
    assert.match(json.error, /\/evidence COMPLETE requires the format JSONL/)
  }
  for (const evidence of ['MEMBERSHIP', 'complete', null, true]) {
    for (const { status, json } of await Promise.all(send({ evidence }))) {
      assert.deepEqual([status, json.code], [400, 'invalid_request'], String(evidence))
    }
  }
  for (const { status } of await Promise.all(send({ format: 'CSV', evidence: 'NONE' }))) {
    assert(status < 300)
  }
})
