import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { startExpireWorker } from '../../src/outlet/export/job/expire-worker.ts'
import {
  EXPORT_STATUSES,
  type ExportJobId,
  type ExportStatus,
  EXPORT_TRANSITIONS,
} from '../../src/outlet/export/job/export-job.ts'
import {
  endExportJob,
  expireExportJobs,
  finishExportJob,
  listExportJobs,
  updateProgress,
  startExportJob,
} from '../../src/outlet/export/job/export-job-store.ts'
import { assertId, type CompanyId, newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { explain } from '../harness/database/explain.ts'
import {
  download,
  makeExport,
  openDownload,
  readJob,
  storeEvents,
} from '../harness/export/exports.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
// Without workers, because the tests decide when jobs expire.
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const audit = createServiceAudit(clock)

const refusalOf = ({ status, json }: TestResponse) => [status, json.code]
const post = (key: string, body: object, path = '/v1/exports') =>
  annals.call('POST', path, { key, body })

test('a new job shows the request and no results yet', async () => {
  const { companyKey: key, workspace, project } = await annals.createCompany()
  const filters = {
    from: '2026-01-01T00:00:00.000Z',
    to: '2026-02-01T00:00:00.000Z',
    workspaceId: String(workspace.id),
    projectId: String(project.id),
    category: 'c',
    actorEmail: 'a@example.com',
  }
  const options = { source: 'HOT_AND_ARCHIVED', format: 'CSV', filters, limit: 3 }
  const id = await makeExport(annals, key, options)
  const createdAt = new Date(clock()).toISOString()
  assert.deepEqual(await readJob(annals, key, id), {
    id,
    name: null,
    status: 'PENDING',
    source: 'HOT_AND_ARCHIVED',
    format: 'CSV',
    filters,
    evidence: 'NONE',
    rowLimit: '3',
    rowsExported: '0',
    truncated: null,
    sha256: null,
    bytes: null,
    createdAt,
    startedAt: null,
    finishedAt: null,
    expiresAt: new Date(clock() + 7 * DAY_MS).toISOString(),
    errorCode: null,
    errorMessage: null,
    failureSummary: null,
    retryHint: null,
    lastAttempt: null,
    rerunOf: null,
  })
})

test('an export keeps its name in lists, in reruns and in the audit log', async () => {
  const company = await annals.createCompany()
  const { companyKey: key } = company
  const jobId = await makeExport(annals, key, { name: '  Sign-ins <March> ' })
  const { json: again } = await post(key, {}, `/v1/exports/${jobId}/rerun`)
  const { json: listed } = await annals.call('GET', '/v1/exports', { key })
  // In any order: both can be created in the same millisecond.
  const named = listed.data.map(({ id, name }: { id: string; name: string }) => [id, name])
  const expected: [string, string][] = [again.jobId, jobId].map((id) => [id, 'Sign-ins <March>'])
  assert.deepEqual(new Map(named), new Map(expected))
  const entries = await readAudit(annals, company)
  const requests = entries.filter(({ action }) => /^EXPORT_RE(QUESTED|RUN)$/.test(action))
  assert.deepEqual(
    requests.map(({ metadata }) => metadata.name),
    ['Sign-ins <March>', 'Sign-ins <March>'],
  )
})

test('rejects an impossible export request and names the field', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const good = { source: 'HOT', format: 'JSONL' }
  const at = '2026-01-01T00:00:00Z'
  const later = '2026-01-02T00:00:00Z'
  const cases: [body: object, paths: string[]][] = [
    [{}, ['/source', '/format']],
    [{ ...good, source: 'COLD' }, ['/source']],
    [{ ...good, format: 'XML' }, ['/format']],
    [{ ...good, extra: 1 }, ['/extra']],
    [{ ...good, name: '' }, ['/name']],
    [{ ...good, name: ' ' }, ['/name']],
    [{ ...good, name: 'two\nlines' }, ['/name']],
    [{ ...good, name: 'x'.repeat(201) }, ['/name']],
    [{ ...good, limit: 0 }, ['/limit']],
    [{ ...good, limit: 1.5 }, ['/limit']],
    [{ ...good, limit: '1' }, ['/limit']],
    [{ ...good, filters: { extra: 1 } }, ['/filters/extra']],
    [{ ...good, filters: { from: 'yesterday' } }, ['/filters/from']],
    [{ ...good, filters: { workspaceId: 'x' } }, ['/filters/workspaceId']],
    [{ ...good, filters: { category: 'x'.repeat(1_025) } }, ['/filters/category']],
    [{ ...good, filters: { from: at, to: at } }, ['/filters/from']],
    [{ ...good, filters: { from: later, to: at } }, ['/filters/from']],
    [{ ...good, source: 'ARCHIVED' }, ['/filters/from', '/filters/to']],
    [{ ...good, source: 'ARCHIVED', filters: { from: at } }, ['/filters/to']],
    [{ ...good, source: 'HOT_AND_ARCHIVED', filters: { to: at } }, ['/filters/from']],
  ]
  for (const path of ['/v1/exports', '/v1/exports/preflight']) {
    for (const [body, paths] of cases) {
      const response = await post(key, body, path)
      assert.deepEqual(refusalOf(response), [400, 'invalid_request'], JSON.stringify(body))
      const found = response.json.details.map((detail: { path: string }) => detail.path)
      assert.deepEqual(found, paths, response.text)
    }
  }
})

test('a workspace key exports its own workspace, a company key any workspace of its company', async () => {
  const a = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const b = await annals.createCompany()
  const [one, two] = a.workspaces
  assert(one && two)
  const naming = (workspaceId: string) => ({
    source: 'HOT',
    format: 'JSONL',
    filters: { workspaceId },
  })
  for (const path of ['/v1/exports', '/v1/exports/preflight']) {
    const ok = path.endsWith('preflight') ? 200 : 201
    assert.equal((await post(one.workspaceKey, naming(one.id), path)).status, ok)
    assert.equal((await post(one.workspaceKey, naming(one.id.toUpperCase()), path)).status, ok)
    assert.equal((await post(a.companyKey, naming(two.id), path)).status, ok)
    const texts = []
    for (const id of [two.id, b.workspace.id, newId()]) {
      const response = await post(one.workspaceKey, naming(id), path)
      assert.deepEqual(refusalOf(response), [403, 'insufficient_scope'])
      texts.push(response.text.replace(response.json.traceId, ''))
    }
    for (const id of [b.workspace.id, newId()]) {
      const response = await post(a.companyKey, naming(id), path)
      assert.deepEqual(refusalOf(response), [404, 'not_found'])
    }
    assert.equal(new Set(texts).size, 1)
  }
})

test('a workspace key sees only the jobs of its workspace, in every route', async () => {
  const { companyKey, workspaces } = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const [one, two] = workspaces
  assert(one && two)
  const own = await makeExport(annals, one.workspaceKey)
  const others = [
    await makeExport(annals, two.workspaceKey),
    await makeExport(annals, companyKey),
    await makeExport(annals, companyKey, { filters: { workspaceId: one.id } }),
  ]
  const routes = [
    ['GET', ''],
    ['GET', '/download'],
    ['GET', '/manifest'],
    ['POST', '/rerun'],
    ['POST', '/cancel'],
  ] as const
  for (const [method, route] of routes) {
    const unknown = await annals.call(method, `/v1/exports/${newId()}${route}`, {
      key: one.workspaceKey,
    })
    for (const jobId of others) {
      const path = `/v1/exports/${jobId}${route}`
      const response = await annals.call(method, path, { key: one.workspaceKey })
      assert.deepEqual(refusalOf(response), [404, 'not_found'])
      assert.equal(
        response.text.replace(response.json.traceId, ''),
        unknown.text.replace(unknown.json.traceId, ''),
      )
    }
  }
  const listed = async (key: string) =>
    (await annals.call('GET', '/v1/exports', { key })).json.data.map(
      (job: TestResponse['json']) => job.id,
    )
  assert.deepEqual(await listed(one.workspaceKey), [own])
  assert.deepEqual((await listed(companyKey)).toSorted(), [own, ...others].toSorted())
  assert.equal((await readJob(annals, companyKey, own)).status, 'PENDING')
})

/** The ids and the length of each page. */
async function listPages(key: string, limit: number): Promise<{ ids: string[]; length: number }[]> {
  const pages: { ids: string[]; length: number }[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const path = `/v1/exports?limit=${limit}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
    const { json, text }: TestResponse = await annals.call('GET', path, { key })
    const ids: string[] = json.data.map((job: TestResponse['json']) => job.id)
    pages.push({ ids, length: text.length })
    cursor = json.nextCursor
  }
  return pages
}

test('a page of exports with large filters ends early, and the next one continues', async () => {
  const { company, companyKey: key } = await annals.createCompany()
  await makeExport(annals, key)
  const values = Array.from({ length: 20 }, (_, nth) => ({
    field: 'resourceId',
    value: `${nth}${'\u0001'.repeat(500)}`,
  }))
  const filters = JSON.stringify({ excluded: values })
  await sql`
    insert into export_job (company_id, id, source, format, filters, ranges, row_limit, status, created_at, expires_at)
    select company_id, gen_random_uuid(), source, format, filters || ${filters}::jsonb, ranges, row_limit, status,
           created_at - n * interval '1 second', expires_at
      from export_job, generate_series(1, 99) as n
     where company_id = ${company.id}`.execute(db)
  const pages = await listPages(key, 200)
  for (const { length } of pages) assert(length < 3_000_000, `${length} characters`)
  const ids = pages.flatMap((page) => page.ids)
  assert.deepEqual([ids.length, new Set(ids).size], [100, 100])
  assert(
    pages.some(({ length }) => length > 1_000_000),
    'the filters are large',
  )
})

test('lists exports newest first, page by page, each once', async () => {
  const { companyKey: key, workspaceKey } = await annals.createCompany()
  const made: string[] = []
  for (let count = 0; count < 7; count++) {
    // Some are in the same millisecond.
    if (count % 3 === 0) advance(1)
    made.push(await makeExport(annals, count % 2 === 0 ? key : workspaceKey))
  }
  const byAge = (ids: string[]) => ids.toSorted().toReversed()
  const list = async (asKey: string) => (await listPages(asKey, 2)).flatMap(({ ids }) => ids)
  assert.deepEqual(await list(key), byAge(made))
  const own = made.filter((_, index) => index % 2 === 1)
  assert.deepEqual(await list(workspaceKey), byAge(own))
  const { json } = await annals.call('GET', '/v1/exports?limit=1', { key })
  const path = `/v1/exports?cursor=${encodeURIComponent(json.nextCursor)}`
  const foreign = await annals.call('GET', path, { key: workspaceKey })
  assert.deepEqual(refusalOf(foreign), [400, 'invalid_cursor'])
})

test('lists exports by status, page by page, and a cursor belongs to its status', async () => {
  const { companyKey: key, workspaceKey } = await annals.createCompany()
  const made: Record<string, string[]> = {}
  for (const status of [...EXPORT_STATUSES, ...EXPORT_STATUSES, ...EXPORT_STATUSES]) {
    advance(1)
    const jobId = await makeExport(annals, workspaceKey)
    await query(
      annals.database.connection,
      `update export_job set status = '${status}' where id = '${jobId}'`,
    )
    made[status] = [jobId, ...(made[status] ?? [])]
  }
  await makeExport(annals, key)
  const list = (search: string) =>
    annals.call('GET', `/v1/exports?${search}`, { key: workspaceKey })
  const idsOf = ({ json }: TestResponse): string[] =>
    json.data.map((job: TestResponse['json']) => job.id)
  for (const status of EXPORT_STATUSES) {
    const first = await list(`status=${status}&limit=2`)
    const cursor = encodeURIComponent(first.json.nextCursor)
    const second = await list(`status=${status}&limit=2&cursor=${cursor}`)
    assert.deepEqual([...idsOf(first), ...idsOf(second)], made[status])
    assert.equal(second.json.nextCursor, null)
    for (const search of ['', `status=${status === 'FAILED' ? 'CANCELED' : 'FAILED'}&`]) {
      const elsewhere = await list(`${search}cursor=${cursor}`)
      assert.deepEqual(refusalOf(elsewhere), [400, 'invalid_cursor'])
    }
  }
  assert.equal(idsOf(await list('')).length, 15)
  for (const status of ['pending', 'DONE', '', 'PENDING,RUNNING']) {
    const response = await list(`status=${status}`)
    assert.deepEqual(refusalOf(response), [400, 'invalid_request'], status)
    assert.match(response.json.error, /PENDING, RUNNING, SUCCEEDED, FAILED, CANCELED/)
  }
})

test('a job that is not downloaded fails after seven days, says what to do, and is audited', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key } = company
  const untouched = await makeExport(annals, key)
  const begun = await makeExport(annals, key)
  const done = await makeExport(annals, key)
  await download(annals, key, done)
  await startExportJob(db, await keyOf(begun), new Date(clock()))
  const worker = startExpireWorker({ db, clock, logger: createLogger('silent'), audit })
  advance(7 * DAY_MS - 1)
  await worker.runNow()
  assert.equal((await readJob(annals, key, untouched)).status, 'PENDING')
  advance(1)
  // Both before and after the worker has run.
  for (const jobId of [untouched, begun]) {
    const response = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
    assert.deepEqual(refusalOf(response), [409, 'export_not_downloadable'])
    assert.match(response.json.error, /expired/)
  }
  await worker.runNow()
  await worker[Symbol.asyncDispose]()
  for (const jobId of [untouched, begun]) {
    const job = await readJob(annals, key, jobId)
    assert.deepEqual([job.status, job.errorCode], ['FAILED', 'expired'])
    assert.equal(job.finishedAt, new Date(clock()).toISOString())
    assert.match(job.failureSummary, /^The job expired at .* without a complete download\.$/)
    for (const field of ['errorMessage', 'retryHint']) assert.match(job[field], /seven days/)
    const response = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
    assert.deepEqual(refusalOf(response), [409, 'export_not_downloadable'])
  }
  assert.equal((await readJob(annals, key, done)).status, 'SUCCEEDED')
  const entries = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'EXPORT_EXPIRED',
  )
  assert.deepEqual(
    entries.map(({ action, actor, resource }) => `${action} ${actor.id} ${resource.id}`).toSorted(),
    [untouched, begun].map((id) => `EXPORT_EXPIRED annals ${id}`).toSorted(),
  )
  const again = await annals.call('POST', `/v1/exports/${untouched}/rerun`, { key })
  assert.equal((await download(annals, key, again.json.jobId)).status, 200)
})

test('a node expires jobs of other companies while another node processes one, and no job twice', async () => {
  const companies = [await annals.createCompany(), await annals.createCompany()]
  const jobs: string[] = []
  for (const { workspaceKey: key } of companies) {
    jobs.push(await makeExport(annals, key))
    advance(1)
  }
  advance(7 * DAY_MS)
  const parts = { db, clock, logger: createLogger('silent'), audit }
  const nodes = [startExpireWorker(parts), startExpireWorker(parts)]
  const statusOf = async (nth: number) =>
    (await readJob(annals, companies[nth]?.workspaceKey ?? '', jobs[nth] ?? '')).status
  // Another node has just expired the first company's job, and hasn't committed yet.
  await db.transaction().execute(async (trx) => {
    await sql`select 1 from export_job where id = ${jobs[0]} for update`.execute(trx)
    await nodes[0]?.runNow()
    assert.deepEqual([await statusOf(0), await statusOf(1)], ['PENDING', 'FAILED'])
  })
  await Promise.all(nodes.map((node) => node.runNow()))
  for (const node of nodes) await node[Symbol.asyncDispose]()
  for (const [nth, company] of companies.entries()) {
    assert.equal(await statusOf(nth), 'FAILED')
    const actions = (await readAudit(annals, company)).map(({ action }) => action)
    assert.deepEqual(actions, ['EXPORT_REQUESTED', 'EXPORT_EXPIRED'])
  }
})

test('only open jobs can be canceled, canceling twice is allowed, and ended jobs are rejected', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const pending = await makeExport(annals, key)
  for (const _time of ['first', 'second']) {
    const { status, json } = await annals.call('POST', `/v1/exports/${pending}/cancel`, { key })
    assert.deepEqual([status, json], [200, { id: pending, status: 'CANCELED' }])
  }
  const job = await readJob(annals, key, pending)
  assert.equal(job.errorCode, 'canceled')
  assert(job.failureSummary && job.retryHint && job.finishedAt)
  const done = await makeExport(annals, key)
  await download(annals, key, done)
  const refused = await annals.call('POST', `/v1/exports/${done}/cancel`, { key })
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
})

type JobKey = { companyId: CompanyId; id: ExportJobId; ranges: [] }

async function keyOf(jobId: string): Promise<JobKey> {
  const [row] = await query(
    annals.database.connection,
    `select company_id from export_job where id = '${jobId}'`,
  )
  return { companyId: assertId(String(row?.['company_id'])), id: assertId(jobId), ranges: [] }
}

const RESULT = { rows: 0, isTruncated: false, sha256: '0'.repeat(64), bytes: 0, spans: [] }
const end = (errorCode: 'canceled' | 'segment_missing') => ({
  errorCode,
  failureSummary: 'A test.',
  now: new Date(clock()),
})
const MOVES: ((job: JobKey) => Promise<unknown>)[] = [
  (job) => startExportJob(db, job, new Date(clock())),
  (job) => updateProgress(db, job, 1),
  (job) => finishExportJob(db, job, RESULT, new Date(clock())),
  (job) => endExportJob(db, job, end('canceled')),
  (job) => endExportJob(db, job, end('segment_missing')),
  () => expireExportJobs(db, { now: new Date(clock() + 8 * DAY_MS), limit: 1_000 }),
]

test('a job changes status only as the state table allows', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const isStatus = (text: unknown): ExportStatus => {
    const status = EXPORT_STATUSES.find((known) => known === text)
    assert(status)
    return status
  }
  for (const from of EXPORT_STATUSES) {
    for (const [index, move] of MOVES.entries()) {
      const jobId = await makeExport(annals, key)
      await query(
        annals.database.connection,
        `update export_job set status = '${from}' where id = '${jobId}'`,
      )
      await move(await keyOf(jobId))
      const to = isStatus((await readJob(annals, key, jobId)).status)
      assert(
        to === from || EXPORT_TRANSITIONS[from].includes(to),
        `move ${index}: ${from} to ${to}`,
      )
    }
  }
})

test('only one of many concurrent requests ends a job', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (let round = 0; round < 10; round++) {
    const job = await keyOf(await makeExport(annals, key))
    await startExportJob(db, job, new Date(clock()))
    const ends = [
      finishExportJob(db, job, RESULT, new Date(clock())),
      finishExportJob(db, job, RESULT, new Date(clock())),
      endExportJob(db, job, end('canceled')),
      endExportJob(db, job, end('segment_missing')),
    ]
    const won = (await Promise.all(ends)).filter(Boolean)
    assert.equal(won.length, 1)
  }
})

test('a job canceled before its last byte does not succeed', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await storeEvents(annals, key, [{ category: 'c', action: 'a' }])
  const jobId = await makeExport(annals, key)
  // A database trigger cancels the job between the start and the end of the download.
  await query(
    annals.database.connection,
    `create function cancel_it() returns trigger language plpgsql as $$
     begin new.status := 'CANCELED'; return new; end $$;
     create trigger cancel_it before update on export_job for each row
     when (new.status = 'RUNNING' and new.id = '${jobId}') execute function cancel_it()`,
  )
  const { rest } = await openDownload(annals, key, jobId)
  await assert.rejects(rest())
  assert.equal((await readJob(annals, key, jobId)).status, 'CANCELED')
})

test('reads a page of jobs from an index, for a company and for a workspace', async () => {
  const { company, workspace, workspaceKey } = await annals.createCompany()
  await makeExport(annals, workspaceKey)
  await query(
    annals.database.connection,
    `insert into export_job (company_id, id, workspace_id, source, format, filters, ranges,
                             row_limit, status, created_at, expires_at)
     select company_id, gen_random_uuid(),
            case when n % 1000 = 0 then workspace_id else gen_random_uuid() end,
            source, format, filters, ranges, row_limit, 'SUCCEEDED',
            created_at + n * interval '1 ms', expires_at
       from export_job, generate_series(1, 20000) as n
      where company_id = '${company.id}'`,
  )
  await query(annals.database.connection, 'analyze export_job')
  const before = { createdAt: new Date(clock() + 5_000), id: newId<'export-job'>() }
  const page = { status: null, limit: 51 }
  for (const workspaceId of [null, workspace.id]) {
    for (const position of [null, before]) {
      const nodes = await explain(annals.app.database.pool, (on) =>
        listExportJobs(on, { companyId: company.id, workspaceId }, { ...page, before: position }),
      )
      const kinds = nodes.map((node) => node['Node Type'])
      const indexes = nodes.flatMap((node) => node['Index Name'] ?? [])
      const index = workspaceId === null ? 'export_job__created' : 'export_job__workspace'
      assert.deepEqual(indexes, [index], JSON.stringify(nodes))
      assert(!kinds.includes('Sort'), kinds.join())
    }
  }
})
