import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { ColdCache } from '../../src/ledger/segment/cold-cache.ts'
import { EXPORT_TIMEOUTS } from '../../src/outlet/export/export-timeouts.ts'
import { startScheduleWorker } from '../../src/outlet/export/schedule/schedule-worker.ts'
import { claimSignerLease } from '../../src/outlet/proof/signer-lease-store.ts'
import {
  claimVerifyRun,
  finishVerifyRun,
  insertVerifyRun,
  listBrokenRuns,
} from '../../src/outlet/verify/verify-run-store.ts'
import { startVerifyScheduleWorker } from '../../src/outlet/verify/verify-schedule-worker.ts'
import { startSweepWorker } from '../../src/outlet/webhook/delivery/sweep-worker.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import { startNoticeMailWorker } from '../../src/tenancy/notice/notice-mail-worker.ts'
import { raiseNotices } from '../../src/tenancy/notice/notice-store.ts'
import { createWithTwoWorkspaces, enroll } from '../harness/dashboard/console.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import { startDispatcher } from '../harness/webhook/dispatcher.ts'
import { query } from '../harness/database/engine.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { draftFor } from '../harness/dashboard/notices.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { startSmtpServer } from '../harness/dashboard/smtp-server.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

/** Work that was scheduled while the clock was 100 days ahead, and continues after it is corrected. */
const DAY_MS = 86_400_000
const AHEAD_MS = 100 * DAY_MS
const AHEAD = `now() + interval '100 days'`
const own = new AsyncDisposableStack()
after(() => own.disposeAsync())
const { clock } = manualClock()
// Without workers, because the tests decide when they run.
const annals = own.use(await startTestApp({ env: ANY_DESTINATION, role: 'api', clock }))
const { database, archive } = annals.app
const { db } = database
const logger = createLogger('silent')
/** The time when the export of yesterday is made, some days from now. */
const oneOClock = (days: number) => (Math.floor(clock() / DAY_MS) + days) * DAY_MS + 3_600_000
const asOwner = (statement: string) => query(annals.database.connection, statement)

/** One node's worker, whose time is the returned one's. */
function startSchedules() {
  const time = { nowMs: clock() }
  const workerClock = () => time.nowMs
  const audit = createServiceAudit(workerClock)
  const exports = { database, archive, clock: workerClock, logger, audit }
  const cache = new ColdCache()
  return { time, worker: startScheduleWorker({ ...exports, timeouts: EXPORT_TIMEOUTS, cache }) }
}

async function countJobs(where: string): Promise<number> {
  const [row] = await asOwner(`select count(*) as n from export_job where ${where}`)
  return Number(row?.['n'])
}

for (const isSetAgain of [false, true]) {
  test(`a schedule ${isSetAgain ? 'that is set again ' : ''}exports its next day`, async () => {
    const tenant = await createWithTwoWorkspaces(annals)
    const admin = await enroll(annals, tenant.company, 'ADMIN')
    const templates = '/dashboard/export-templates'
    const content = { name: 'Nightly', body: { source: 'HOT', format: 'JSONL', filters: {} } }
    const { json: template } = await admin.call('POST', templates, { body: content })
    const path = `${templates}/${template.id}/schedule`
    const body = { cadence: 'DAILY' }
    await admin.call('PUT', path, { body })
    const { time, worker } = startSchedules()
    await using _running = worker
    const ofCompany = `company_id = '${tenant.company.company.id}'`
    time.nowMs = oneOClock(5)
    await worker.runNow()
    assert.equal(await countJobs(`${ofCompany} and cadence is not null`), 5)
    // A worker died in that time while it wrote a file.
    await asOwner(`update export_job set status = 'PENDING', finished_at = null, attempt_due_at = ${AHEAD}
                    where id = (select max(id::text)::uuid from export_job where ${ofCompany})`)
    time.nowMs = clock()
    if (isSetAgain) {
      await admin.call('DELETE', path)
      await admin.call('PUT', path, { body })
    }
    await worker.runNow()
    assert.equal(await countJobs(`status <> 'SUCCEEDED'`), 0, 'the open one was taken over')
    await storeEvents(annals, tenant.company.workspaceKey, [{ category: 'auth', action: 'late' }])
    time.nowMs = oneOClock(1)
    await worker.runNow()
    const jobs = await asOwner(
      `select status, rows_exported from export_job where ${ofCompany} and cadence is not null`,
    )
    assert.deepEqual(jobs, [{ status: 'SUCCEEDED', rows_exported: '7' }])
    await admin.call('DELETE', path)
  })
}

test('a delivery is sent within a minute', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver()
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await using stack = new AsyncDisposableStack()
  receiver.respondWith({ status: 500 })
  startDispatcher(stack, annals)
  await sendEvents(annals, tenant.workspaceKey, 1)
  await waitForDeliveries(annals, id, 1, 'RETRY_SCHEDULED')
  receiver.respondWith({ status: 200 })
  await asOwner(`update webhook_delivery set due_at = ${AHEAD} where webhook_id = '${id}'`)
  await asOwner(`update webhook set resting_until = ${AHEAD} where id = '${id}'`)
  await using worker = startSweepWorker({ db, clock, logger })
  await worker.runNow()
  await waitForDeliveries(annals, id, 1, 'SUCCEEDED')
})

test('a notice is sent by mail', async () => {
  let isRefusing = true
  await using smtp = await startSmtpServer({ replyTo: () => (isRefusing ? 'later' : 'accept') })
  const company = await annals.createCompany()
  await signInAs(annals, company, 'OWNER')
  await raiseNotices(db, [draftFor(company, { cause: newId() })], Date.now())
  const deps = { db, logger, smtpUrl: new Secret(smtp.url), baseUrl: 'https://annals.example' }
  const cutSignal = new AbortController().signal
  await using worker = startNoticeMailWorker({ ...deps, cutSignal, clock })
  await worker.runNow()
  isRefusing = false
  await asOwner(`update notice_mail set due_at = ${AHEAD}`)
  await worker.runNow()
  const rows = await asOwner('select distinct status from notice_mail')
  assert.deepEqual(rows, [{ status: 'SENT' }])
})

test('another node continues a verification', async () => {
  const { company, workspace } = await annals.createCompany()
  const request = { companyId: company.id, workspaceId: workspace.id, total: 0 }
  const run = await insertVerifyRun(db, { ...request, createdBy: newId(), now: new Date() })
  await asOwner(`update verify_run set beat_at = ${AHEAD} where id = '${run.id}'`)
  assert.equal((await claimVerifyRun(db, new Date()))?.id, run.id)
  assert.equal(await claimVerifyRun(db, new Date()), null, 'its node is there')
})

test('a run after the correction is newer than one before', async () => {
  const { company, workspace } = await annals.createCompany()
  const chain = {
    companyId: company.id,
    workspaceId: workspace.id,
    total: 1,
    createdBy: newId<'user'>(),
  }
  const verify = async (status: 'HOLDS' | 'BROKEN', atMs: number) => {
    const run = await insertVerifyRun(db, { ...chain, now: new Date(atMs) })
    const end = { status, checked: 1, verdict: '', badSeq: null, badEventId: null }
    await finishVerifyRun(db, run, end, new Date(atMs))
  }
  await verify('HOLDS', clock() + AHEAD_MS)
  await verify('BROKEN', clock())
  const broken = await listBrokenRuns(db, { companyId: company.id, workspaceIds: [workspace.id] })
  assert.equal(broken.length, 1)
})

test('a chain is verified within its interval', async () => {
  const { workspace } = await annals.createCompany()
  await asOwner(`insert into verify_schedule values ('${workspace.id}', ${AHEAD})
                 on conflict (workspace_id) do update set due_at = excluded.due_at`)
  const deps = { db, clock, logger, intervalMs: DAY_MS, onCreated: () => {} }
  await using worker = startVerifyScheduleWorker(deps)
  await worker.runNow()
  const [row] = await asOwner(
    `select due_at from verify_schedule where workspace_id = '${workspace.id}'`,
  )
  const dueAt = row?.['due_at']
  assert(dueAt instanceof Date && dueAt.getTime() <= clock() + DAY_MS, String(dueAt))
})

test('another node can sign', async () => {
  assert(await claimSignerLease(db, { holder: newId(), leaseMs: AHEAD_MS }))
  assert(await claimSignerLease(db, { holder: newId(), leaseMs: 10_000 }))
  assert.equal(await claimSignerLease(db, { holder: newId(), leaseMs: 10_000 }), false)
})
