import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { ColdCache } from '../../src/ledger/segment/cold-cache.ts'
import { startExpireWorker } from '../../src/outlet/export/job/expire-worker.ts'
import { EXPORT_TIMEOUTS } from '../../src/outlet/export/export-timeouts.ts'
import { startScheduleWorker } from '../../src/outlet/export/schedule/schedule-worker.ts'
import { assertId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { type ObjectStore, StorageError } from '../../src/platform/object-store/object-store.ts'
import { DAY_MS, HOUR_MS } from '../../src/platform/time/time-units.ts'
import { updatePlan } from '../../src/tenancy/company-store.ts'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { checkCompleteFile } from '../harness/export/complete-file.ts'
import {
  createWithTwoWorkspaces,
  enroll,
  openDashboardDownload,
} from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { download, parseJsonl, storeEvents } from '../harness/export/exports.ts'
import { noticesOf } from '../harness/dashboard/notices.ts'
import { signEvents } from '../harness/proof/proof.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const TEMPLATES = '/dashboard/export-templates'
const EXPORTS = '/dashboard/exports'
// The service's time stands still, because sessions expire. Only the workers' time passes.
const { clock } = manualClock()
let passedMs = 0
const workerClock = () => clock() + passedMs
beforeEach(() => void (passedMs = 0))
// Otherwise, the worker would export them in the tests that follow.
afterEach(() => db.deleteFrom('export_schedule').execute())
// Without workers, because the tests decide when a schedule runs.
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { database, archive } = annals.app
const { db } = database
const asOwner = (statement: string) => query(annals.database.connection, statement)

/** A storage that contains what the service stores, and can fail. */
const stored = new Map<string, Buffer>()
let isFull = false
/** Like a storage that says 404 for objects that it has. */
let isBlind = false
const storage: ObjectStore = {
  ...archive,
  put: async (key, bytes) => {
    if (isFull) throw new StorageError('No space.', { summary: 'The storage is full.' })
    stored.set(key, bytes)
    await archive.put(key, bytes)
  },
  stat: (key) => archive.stat(key),
  read: async (key) => (isBlind ? null : await archive.read(key)),
  readRange: async (key, start, end) => (isBlind ? null : await archive.readRange(key, start, end)),
  delete: async (key) => {
    stored.delete(key)
    await archive.delete(key)
  },
}

const logger = createLogger('silent')
const audit = createServiceAudit(workerClock)

const exports = {
  database,
  archive: storage,
  clock: workerClock,
  logger,
  timeouts: EXPORT_TIMEOUTS,
  audit,
}

/** One node's worker, which runs when the test calls it. */
function startNode() {
  const worker = startScheduleWorker({ ...exports, cache: new ColdCache() })
  after(() => worker[Symbol.asyncDispose]())
  return worker
}
const node = startNode()

/** Moves to the time when the exports of the given number of UTC days are due. */
function passDays(days: number): void {
  const nowMs = workerClock()
  passedMs += (Math.floor(nowMs / DAY_MS) + days) * DAY_MS + HOUR_MS - nowMs
}

async function save(member: Member, filters: object = {}, more: object = {}): Promise<string> {
  const body = { name: 'Nightly', body: { source: 'HOT', format: 'JSONL', filters, ...more } }
  const { status, json, text } = await member.call('POST', TEMPLATES, { body })
  assert.equal(status, 201, text)
  return json.id
}

const schedule = (member: Member, id: string, cadence = 'DAILY') =>
  member.call('PUT', `${TEMPLATES}/${id}/schedule`, { body: { cadence } })
const refusalOf = ({ status, json }: TestResponse) => [status, json.code]
async function scheduled(member: Member, filters: object = {}, more: object = {}): Promise<string> {
  const id = await save(member, filters, more)
  const { status, text } = await schedule(member, id)
  assert.equal(status, 200, text)
  return id
}

async function jobsOf(member: Member): Promise<TestResponse['json'][]> {
  const { json } = await member.call('GET', EXPORTS)
  return json.data
}

async function templateOf(member: Member, id: string): Promise<TestResponse['json']> {
  const { json } = await member.call('GET', TEMPLATES)
  return json.templates.find((template: { id: string }) => template.id === id)
}

const objectsOf = (jobId: string) => [...stored.keys()].filter((key) => key.includes(jobId))

test('a schedule exports each day once, and the stored file can be downloaded as often as needed', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await scheduled(admin, { workspaceId: production.id, category: 'auth' })
  const { schedule: next } = await templateOf(admin, id)
  const midnight = new Date((Math.floor(clock() / DAY_MS) + 1) * DAY_MS)
  const runAt = new Date(midnight.getTime() + HOUR_MS / 4).toISOString()
  assert.deepEqual(next, { cadence: 'DAILY', nextRunAt: runAt, problem: null })
  await node.runNow()
  assert.deepEqual(await jobsOf(admin), [])

  passDays(1)
  await Promise.all([node.runNow(), startNode().runNow(), startNode().runNow()])
  const [job, ...others] = await jobsOf(admin)
  assert.deepEqual(others, [])
  assert.deepEqual(
    [job.status, job.name, job.source, job.cadence, job.isStored, job.rowsExported],
    ['SUCCEEDED', 'Nightly', 'HOT_AND_ARCHIVED', 'DAILY', true, '2'],
  )
  assert.deepEqual(job.createdBy, { kind: 'SCHEDULE', email: null })
  assert.deepEqual(job.filters, {
    from: new Date(midnight.getTime() - DAY_MS).toISOString(),
    to: midnight.toISOString(),
    workspaceId: production.id,
    category: 'auth',
  })
  for (const _again of [1, 2]) {
    const received = await (await openDashboardDownload(annals, admin, job.id)).rest()
    assert.equal(received.sha256, job.sha256)
    assert.deepEqual(
      parseJsonl(received.text).map(({ action }) => action),
      ['production.login', 'production.logout'],
    )
    const day = job.filters.from.slice(0, 10)
    assert.match(received.headers['content-disposition'] ?? '', new RegExp(`-nightly-${day}--`))
  }
  const { companyKey: key } = company
  assert.equal((await download(annals, key, job.id)).sha256, job.sha256)
  await signEvents(annals, production.id)
  const { json } = await annals.call('GET', `/v1/exports/${job.id}/manifest`, { key })
  assert.deepEqual([json.sha256, json.workspaces[0].lastSeq], [job.sha256, 3])
  assert.deepEqual(objectsOf(job.id), [`exports/${company.company.id}/${job.id}/000001`])
  const actions = (await readAudit(annals, company))
    .filter(({ resource }) => [id, job.id].includes(resource?.id ?? ''))
    .map(({ action, actor }) => `${action} ${actor.email ?? actor.id}`)
  assert.deepEqual(actions.slice(0, 4), [
    `EXPORT_TEMPLATE_CREATED ${admin.email}`,
    `EXPORT_SCHEDULE_SET ${admin.email}`,
    'EXPORT_REQUESTED annals',
    'EXPORT_STORED annals',
  ])
})

test('a schedule keeps the evidence of its template, and stores a complete file', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const filters = { workspaceId: production.id, category: 'auth' }
  await scheduled(admin, filters, { evidence: 'COMPLETE' })
  const limited = await scheduled(admin, filters, { evidence: 'COMPLETE', limit: 2 })
  passDays(1)
  await node.runNow()
  const [job, ...others] = await jobsOf(admin)
  assert.deepEqual([job.status, job.evidence, job.rowsExported], ['SUCCEEDED', 'COMPLETE', '2'])
  const { text } = await (await openDashboardDownload(annals, admin, job.id)).rest()
  const chain = checkCompleteFile(text).get(production.id)
  assert.deepEqual([chain?.rows.length, chain?.stubs.length, others], [2, 1, []])
  assert.match((await templateOf(admin, limited)).schedule.problem, /3 rows and stubs, and the/)
})

test('a file of several parts has the bytes of the export', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const text = 'x'.repeat(200_000)
  for (let count = 0; count < 90; count += 1) {
    const event = { category: 'large', action: `large.${count}`, metadata: { text } }
    await storeEvents(annals, company.workspaceKey, [event])
  }
  await scheduled(admin, { category: 'large' })
  passDays(1)
  await node.runNow()
  const [job] = await jobsOf(admin)
  assert.deepEqual([job.rowsExported, objectsOf(job.id).length], ['90', 2])
  const received = await (await openDashboardDownload(annals, admin, job.id)).rest()
  assert.deepEqual([received.sha256, received.trailers['x-row-count']], [job.sha256, '90'])
  const { json: again } = await admin.call('POST', `${EXPORTS}/${job.id}/rerun`)
  const rerun = await (await openDashboardDownload(annals, admin, again.id)).rest()
  assert.equal(rerun.sha256, job.sha256)
})

test('missed days are exported one by one, and a file is deleted with its job after 90 days', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await scheduled(admin, {}, { format: 'CSV' })
  passDays(3)
  await node.runNow()
  const jobs = await jobsOf(admin)
  assert.deepEqual(jobs.map(({ rowsExported }) => String(rowsExported)).toSorted(), ['0', '0', '6'])
  assert.equal((await admin.call('DELETE', `${TEMPLATES}/${id}/schedule`)).status, 204)
  const keys = jobs.flatMap((job) => objectsOf(job.id))
  assert.equal(keys.length, 3)
  const sweeper = startExpireWorker({ db, clock: workerClock, logger, audit })
  after(() => sweeper[Symbol.asyncDispose]())
  passedMs += 89 * DAY_MS
  await node.runNow()
  await sweeper.runNow()
  assert.equal((await jobsOf(admin)).length, 3)
  passedMs += 2 * DAY_MS
  // A job is kept until its file is deleted.
  await sweeper.runNow()
  assert.equal((await jobsOf(admin)).length, 3)
  await node.runNow()
  await sweeper.runNow()
  assert.deepEqual(await jobsOf(admin), [])
  for (const key of keys) assert.equal(await archive.stat(key), null)
})

test('a file that could not be written says why, and is written again after a wait', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  await scheduled(admin)
  passDays(1)
  isFull = true
  await node.runNow()
  isFull = false
  const [failed] = await jobsOf(admin)
  assert.deepEqual([failed.status, failed.isStored], ['RUNNING', false])
  assert.match(failed.lastAttempt.message, /^The storage is full\. Annals retries it on its own\. /)
  const early = await admin.call('GET', `${EXPORTS}/${failed.id}/download`)
  assert.deepEqual(refusalOf(early), [409, 'export_not_downloadable'])
  assert.match(early.json.error, /belongs to a schedule and is being written/)
  await node.runNow()
  assert.equal((await jobsOf(admin))[0].status, 'RUNNING')
  passedMs += 5 * 60_000
  await node.runNow()
  const [job] = await jobsOf(admin)
  assert.deepEqual([job.id, job.status, job.isStored], [failed.id, 'SUCCEEDED', true])
  assert.deepEqual(await noticesOf(admin), [])
})

test('creates one notice for a file that could not be written three times', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  await scheduled(admin)
  passDays(1)
  isFull = true
  const counts: number[] = []
  for (const _attempt of [1, 2, 3, 4]) {
    await node.runNow()
    counts.push((await noticesOf(admin)).length)
    passedMs += 6 * HOUR_MS
  }
  isFull = false
  assert.deepEqual(counts, [0, 0, 1, 1])
  const [notice] = await noticesOf(admin)
  assert.equal(notice?.kind, 'EXPORT_FAILED')
  assert.match(
    notice.message,
    /^A scheduled JSONL export is late\. The archive storage could not be/,
  )
})

test('an archived file that the storage does not find once is tried again', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  await archiveAll(annals)
  await scheduled(admin)
  passDays(1)
  isBlind = true
  await node.runNow()
  isBlind = false
  const [failed] = await jobsOf(admin)
  assert.deepEqual([failed.isStored, failed.lastAttempt.code], [false, 'segment_missing'])
  passedMs += 5 * 60_000
  await node.runNow()
  const [job] = await jobsOf(admin)
  assert.deepEqual([job.id, job.status, job.rowsExported], [failed.id, 'SUCCEEDED', '6'])
})

test('a stored file that is missing or damaged is never sent as a whole one', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  await scheduled(admin)
  passDays(1)
  await node.runNow()
  const [job] = await jobsOf(admin)
  const [key] = objectsOf(job.id)
  assert(key)
  const bytes = await archive.read(key)
  assert(bytes)
  assert.equal(createHash('sha256').update(bytes).digest('hex'), job.sha256)
  await archive.put(key, Buffer.from(bytes).fill(32, 10, 11))
  const opened = await openDashboardDownload(annals, admin, job.id)
  await assert.rejects(opened.rest())
  await archive.delete(key)
  const lost = await admin.call('GET', `${EXPORTS}/${job.id}/download`)
  assert.deepEqual(refusalOf(lost), [409, 'export_not_downloadable'])
})

test('a schedule waits with a sentence while the plan has no exports', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await scheduled(admin)
  const companyId = assertId<'company'>(company.company.id)
  await updatePlan(db, { companyId, plan: 'FREE' })
  passDays(1)
  await node.runNow()
  const { schedule: waiting } = await templateOf(admin, id)
  assert.match(waiting.problem, /plan/)
  const notices = await noticesOf(admin)
  assert.deepEqual(
    notices.map(({ kind, message }) => [kind, message]),
    [['EXPORT_FAILED', `The scheduled export “Nightly” could not start. ${waiting.problem}`]],
  )
  assert.equal(waiting.nextRunAt, new Date(workerClock() + HOUR_MS).toISOString())
  const other = await save(admin)
  assert.deepEqual(refusalOf(await schedule(admin, other)), [403, 'plan_required'])
  await updatePlan(db, { companyId, plan: 'PRO' })
  passedMs += HOUR_MS
  await node.runNow()
  assert.equal((await templateOf(admin, id)).schedule.problem, null)
  assert.deepEqual(
    (await jobsOf(admin)).map(({ status }) => status),
    ['SUCCEEDED'],
  )
})

test('analysts schedule templates of their workspaces, and see only exports of these', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const analyst = await enroll(annals, company, 'ANALYST', production)
  const other = await enroll(annals, company, 'ANALYST', staging)
  const viewer = await enroll(annals, company, 'VIEWER', production)
  const own = await save(analyst, { workspaceId: production.id })
  for (const [member, expected] of [
    [viewer, [403, 'insufficient_role']],
    [other, [404, 'not_found']],
    [
      await enroll(annals, (await createWithTwoWorkspaces(annals)).company, 'OWNER'),
      [404, 'not_found'],
    ],
  ] as const) {
    assert.deepEqual(refusalOf(await schedule(member, own)), expected)
    const stopped = await member.call('DELETE', `${TEMPLATES}/${own}/schedule`)
    assert.deepEqual(refusalOf(stopped), expected)
  }
  assert.equal((await schedule(analyst, own)).status, 200)
  const whole = await save(analyst)
  const refused = await schedule(analyst, whole)
  assert.deepEqual(refusalOf(refused), [403, 'insufficient_role'])
  assert.match(refused.json.error, /exports all workspaces of the company/)
  assert.equal((await schedule(admin, whole)).status, 200)
  passDays(1)
  await node.runNow()
  assert.equal((await jobsOf(admin)).length, 2)
  const [job, ...rest] = await jobsOf(analyst)
  assert.deepEqual([job.filters.workspaceId, rest], [production.id, []])
  assert.deepEqual(await jobsOf(other), [])
  const foreign = await other.call('GET', `${EXPORTS}/${job.id}/download`)
  assert.deepEqual(refusalOf(foreign), [404, 'not_found'])
  const denied = await viewer.call('GET', `${EXPORTS}/${job.id}/download`)
  assert.deepEqual(refusalOf(denied), [403, 'insufficient_role'])
})

test('a period is exported once, even if its schedule is stopped and started again', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await scheduled(admin)
  const other = await scheduled(admin, { category: 'auth' })
  passDays(1)
  await node.runNow()
  assert.equal((await jobsOf(admin)).length, 2)
  // The service's clock stands still, so the next period is the one that was already exported.
  await admin.call('DELETE', `${TEMPLATES}/${id}/schedule`)
  await schedule(admin, id)
  await node.runNow()
  assert.equal((await jobsOf(admin)).length, 2)
  passDays(1)
  await node.runNow()
  assert.equal((await jobsOf(admin)).length, 4)
  assert.equal((await templateOf(admin, other)).schedule.problem, null)
})

test('a schedule that fails unexpectedly does not stop the others', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const broken = await scheduled(admin, { category: 'broken' })
  const healthy = await scheduled(admin, { category: 'auth' })
  await asOwner(`
    create function refuse_job() returns trigger language plpgsql as $$
      begin raise exception 'broken'; end $$`)
  await asOwner(`
    create trigger refuse_job before insert on export_job
    for each row when (new.filters::text like '%broken%') execute function refuse_job()`)
  passDays(1)
  await node.runNow()
  await asOwner(`
drop function refuse_job cascade`)
  const problemOf = async (id: string) => (await templateOf(admin, id)).schedule.problem
  assert.match(await problemOf(broken), /^An unexpected error occurred/)
  assert.equal(await problemOf(healthy), null)
  assert.deepEqual(
    (await jobsOf(admin)).map(({ status }) => status),
    ['SUCCEEDED'],
  )
  passedMs += HOUR_MS
  await node.runNow()
  assert.equal((await jobsOf(admin)).length, 2)
  assert.equal(await problemOf(broken), null)
})

test('a change of the template applies to the next period, and deleting it ends the schedule', async () => {
  const { company, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await scheduled(admin)
  const filters = { workspaceId: staging.id, range: '7d' }
  const change = { name: 'Staging', body: { source: 'HOT', format: 'CSV', filters } }
  assert.equal((await admin.call('PATCH', `${TEMPLATES}/${id}`, { body: change })).status, 200)
  await storeEvents(annals, staging.workspaceKey, [{ category: 'later', action: 'later' }])
  passDays(1)
  await node.runNow()
  const [job] = await jobsOf(admin)
  assert.deepEqual([job.name, job.format, job.rowsExported], ['Staging', 'CSV', '4'])
  assert.equal((await admin.call('DELETE', `${TEMPLATES}/${id}`)).status, 204)
  passDays(1)
  await node.runNow()
  assert.equal((await jobsOf(admin)).length, 1)
})

test('a template with a saved view, or one too many, has no schedule', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const view = { name: 'A view', workspaceId: null, visibility: 'PRIVATE', query: {} }
  const { json } = await admin.call('POST', '/dashboard/explorer/views', { body: view })
  const viewed = await save(admin, {}, { savedExplorerViewId: json.id })
  const refused = await schedule(admin, viewed)
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(refused.json.error, /saved view/)
  const ids: string[] = []
  for (let count = 0; count < COMPANY_BOUNDS.exportSchedulesMax; count += 1) {
    ids.push(await scheduled(admin))
  }
  assert.deepEqual(refusalOf(await schedule(admin, await save(admin))), [409, 'conflict'])
  assert.equal((await schedule(admin, ids[0] ?? '', 'MONTHLY')).status, 200)
})

test('without an archive, a schedule is refused with the reason', async () => {
  await using bare = await startTestApp({ role: 'api', hasArchive: false })
  const company = await bare.createCompany()
  const admin = await enroll(bare, company, 'ADMIN')
  const refused = await schedule(admin, await save(admin))
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(refused.json.error, /no archive is configured\. Set ANNALS_ARCHIVE_URL/)
})

test('a schedule stores its first file before anything was archived', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-new-archive-'))
  // As on a fresh installation, where nothing has created the folder yet.
  const env = { ANNALS_ARCHIVE_URL: pathToFileURL(join(folder.path, 'archive')).href }
  await using fresh = await startTestApp({ role: 'api', clock, env })
  const company = await fresh.createCompany()
  const admin = await enroll(fresh, company, 'ADMIN')
  await storeEvents(fresh, company.workspaceKey, [{ category: 'auth', action: 'login' }])
  await scheduled(admin)
  passDays(1)
  await using worker = startScheduleWorker({
    ...exports,
    database: fresh.app.database,
    archive: fresh.app.archive,
    cache: new ColdCache(),
  })
  await worker.runNow()
  const [job] = await jobsOf(admin)
  assert.deepEqual([job.status, job.isStored], ['SUCCEEDED', true])
})
