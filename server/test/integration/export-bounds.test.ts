import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { startExpireWorker } from '../../src/outlet/export/job/expire-worker.ts'
import { deleteEndedJobs, listExportJobs } from '../../src/outlet/export/job/export-job-store.ts'
import { listVisibleJobs } from '../../src/outlet/export/job/visible-job-store.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { explain } from '../harness/database/explain.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { copyJob, download, makeExport, readJob } from '../harness/export/exports.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const OPEN_MAX = 1_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const audit = createServiceAudit(clock)
const { connection } = annals.database

const refusalOf = ({ status, json }: TestResponse) => [status, json.code]
const body = { source: 'HOT', format: 'JSONL' }
/** So that the worker of a later test doesn't have to end a thousand exports. */
const removeExports = (companyId: string) =>
  query(connection, `delete from export_job where company_id = '${companyId}'`)
const create = (key: string) => annals.call('POST', '/v1/exports', { key, body })

test('limits a company to 1,000 open exports, even with concurrent requests', async () => {
  const { company, companyKey, workspaceKey } = await annals.createCompany()
  const others = await annals.createCompany()
  const first = await makeExport(annals, workspaceKey)
  await copyJob(annals, first, { count: OPEN_MAX - 4 })
  const keys = [workspaceKey, companyKey, workspaceKey, companyKey, workspaceKey, companyKey]
  const responses = await Promise.all([
    ...keys.map(create),
    annals.call('POST', `/v1/exports/${first}/rerun`, { key: companyKey }),
  ])
  const made = responses.filter(({ status }) => status === 201)
  assert.equal(made.length, 3)
  const refused = responses.filter(({ status }) => status !== 201)
  for (const response of refused) {
    assert.deepEqual(refusalOf(response), [409, 'conflict'])
    for (const way of [/1000 open/, /[Dd]ownload/, /cancel/, /wait/]) {
      assert.match(response.json.error, way)
    }
  }
  assert.equal((await create(others.workspaceKey)).status, 201)
  await removeExports(company.id)
})

test('an export that ends makes room for another', async () => {
  const { company, workspaceKey: key } = await annals.createCompany()
  const canceled = await makeExport(annals, key)
  const downloaded = await makeExport(annals, key)
  await copyJob(annals, downloaded, { count: OPEN_MAX - 2 })
  const rerun = () => annals.call('POST', `/v1/exports/${canceled}/rerun`, { key })
  assert.deepEqual(refusalOf(await create(key)), [409, 'conflict'])
  assert.deepEqual(refusalOf(await rerun()), [409, 'conflict'])
  await annals.call('POST', `/v1/exports/${canceled}/cancel`, { key })
  assert.equal((await rerun()).status, 201)
  assert.deepEqual(refusalOf(await create(key)), [409, 'conflict'])
  await download(annals, key, downloaded)
  assert.equal((await create(key)).status, 201)
  assert.deepEqual(refusalOf(await create(key)), [409, 'conflict'])
  // Expired jobs no longer count as open, even before the worker has run.
  advance(7 * DAY_MS)
  assert.equal((await create(key)).status, 201)
  await removeExports(company.id)
})

test('an export is kept for 90 days after its end, then gets a 404', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const [done, canceled, expired] = [
    await makeExport(annals, key),
    await makeExport(annals, key),
    await makeExport(annals, key),
  ]
  await download(annals, key, done)
  await annals.call('POST', `/v1/exports/${canceled}/cancel`, { key })
  const worker = startExpireWorker({ db, clock, logger: createLogger('silent'), audit })
  advance(7 * DAY_MS)
  await worker.runNow()
  advance(83 * DAY_MS)
  await worker.runNow()
  for (const jobId of [done, canceled, expired]) await readJob(annals, key, jobId)
  const again = await annals.call('POST', `/v1/exports/${done}/rerun`, { key })
  advance(1)
  await worker.runNow()
  for (const jobId of [done, canceled]) {
    for (const [method, route] of [
      ['GET', ''],
      ['GET', '/download'],
      ['GET', '/manifest'],
      ['POST', '/rerun'],
      ['POST', '/cancel'],
    ] as const) {
      const response = await annals.call(method, `/v1/exports/${jobId}${route}`, { key })
      assert.deepEqual(refusalOf(response), [404, 'not_found'])
    }
  }
  // The expired job is kept from its expiry on, and a rerun stays when its original is deleted.
  await readJob(annals, key, expired)
  assert.equal((await readJob(annals, key, again.json.jobId)).rerunOf, done)
  assert.equal((await download(annals, key, again.json.jobId)).status, 200)
  await worker[Symbol.asyncDispose]()
})

test('deletes all old exports in one run, and never open ones', async () => {
  const { company, workspaceKey: key } = await annals.createCompany()
  const open = await makeExport(annals, key)
  const ended = await makeExport(annals, key)
  await annals.call('POST', `/v1/exports/${ended}/cancel`, { key })
  await copyJob(annals, ended, { count: 2_500 })
  await query(
    connection,
    `update export_job set expires_at = expires_at + interval '1 year' where id = '${open}'`,
  )
  advance(91 * DAY_MS)
  const worker = startExpireWorker({ db, clock, logger: createLogger('silent'), audit })
  await worker.runNow()
  await worker[Symbol.asyncDispose]()
  const rows = await query(
    connection,
    `select id from export_job where company_id = '${company.id}'`,
  )
  assert.deepEqual(rows, [{ id: open }])
})

test('finds old exports by an index', async () => {
  const nodes = await explain(annals.app.database.pool, (on) =>
    deleteEndedJobs(on, { before: new Date(clock()), limit: 1_000 }),
  )
  const indexes = nodes.flatMap((node) => node['Index Name'] ?? [])
  assert.deepEqual(indexes, ['export_job__finished'], JSON.stringify(nodes))
})

test('lists the few exports with a status among very many by an index, for a key and for a member', async () => {
  const { company, workspaceKey: key, user } = await annals.createCompany()
  const ended = await makeExport(annals, key)
  await annals.call('POST', `/v1/exports/${ended}/cancel`, { key })
  await copyJob(annals, ended, { count: rounds(20_000, 100_000) })
  const failed = await makeExport(annals, key)
  await query(
    connection,
    `update export_job set status = 'FAILED', error_code = 'expired', finished_at = now()
      where id = '${failed}'`,
  )
  await query(connection, 'analyze export_job')
  const { pool } = annals.app.database
  const page = { status: 'FAILED', before: null, limit: 50 } as const
  const viewer = {
    companyId: company.id,
    companyName: company.name,
    plan: company.plan,
    userId: newId<'user'>(),
    sessionId: newId<'session'>(),
    email: user.email,
    role: 'OWNER',
    needsSecondFactor: false,
    allowedRanges: null,
    workspaceIds: null,
  } as const
  const lists = [
    (on: Queryable) => listExportJobs(on, { companyId: company.id, workspaceId: null }, page),
    (on: Queryable) => listVisibleJobs(on, viewer, page),
  ]
  for (const list of lists) {
    assert.deepEqual(
      (await list(db)).map(({ id }) => id),
      [failed],
    )
    const nodes = await explain(pool, list)
    const indexes = nodes.flatMap((node) => node['Index Name'] ?? [])
    assert.deepEqual(indexes, ['export_job__status'], JSON.stringify(nodes))
    assert(!nodes.some((node) => node['Node Type'] === 'Sort'))
  }
})
