import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { startSignerWorker } from '../../src/outlet/proof/signer-worker.ts'
import { startVerifyWorker } from '../../src/outlet/verify/verify-run-worker.ts'
import { startVerifyScheduleWorker } from '../../src/outlet/verify/verify-schedule-worker.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { listPaths, openBucket } from '../harness/archive/bucket.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { noticesOf } from '../harness/dashboard/notices.ts'
import { createSigner, readCheckpoint, readRefusal, sendEvents } from '../harness/proof/proof.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { eventually } from '../harness/timing/eventually.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const logger = createLogger('silent')

/** A service whose only archived file is in a cold storage class. Only the tests sign and verify. */
async function startCold() {
  await using stack = new AsyncDisposableStack()
  const s3 = await openBucket(stack)
  const { clock, advance } = manualClock(Date.now() - 30 * DAY_MS)
  const env = { ...s3.env, ANNALS_RATE_LIMITS: 'off' }
  const annals = stack.use(await startTestApp({ role: 'api', clock, env }))
  const company = await annals.createCompany({ workspaces: ['Cold', 'Other'] })
  const [cold, other] = company.workspaces
  assert(cold && other)
  await sendEvents(annals, cold.workspaceKey, 5)
  assert.equal((await archiveAll(annals)).failed, 0)
  await sendEvents(annals, other.workspaceKey, 3)
  const [path = ''] = await listPaths(annals, cold.id)
  s3.freeze(path, 'GLACIER')
  const kept = stack.move()
  const service = { annals, s3, path, clock, advance, company, cold, other }
  return { ...service, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

test('the signer requests the restore of archived events, and signs other chains', async () => {
  await using service = await startCold()
  const { annals, s3, path, cold, other } = service
  const signer = createSigner(annals)
  const { db } = annals.app.database
  {
    await using _worker = startSignerWorker({ db, signer, checkpointSeconds: 1, logger })
    await eventually(async () => {
      assert.equal((await readCheckpoint(annals, other.id))?.size, 3)
    })
  }
  assert.equal(await signer.sign(cold.id), 'restoring')
  assert.equal(await readCheckpoint(annals, cold.id), null)
  assert.equal(await readRefusal(annals, cold.id), '')
  s3.finishRestore(path)
  assert.equal(await signer.sign(cold.id), 'done')
  assert.equal((await readCheckpoint(annals, cold.id))?.size, 5)
})

test('a scheduled verification waits for a restore without a notice, and then holds', async () => {
  await using service = await startCold()
  const { annals, s3, path, clock, advance, company, cold } = service
  const { pool, db } = annals.app.database
  const { archive } = annals.app
  const run = (sql: string) => query(annals.database.connection, sql)
  const verifyDue = async () => {
    const deps = { db, clock, logger, intervalMs: DAY_MS, onCreated: () => {} }
    await using schedule = startVerifyScheduleWorker(deps)
    await schedule.runNow()
    const audit = createServiceAudit(clock)
    await using worker = startVerifyWorker({
      pool,
      db,
      archive,
      clock,
      logger,
      audit,
      signed: null,
    })
    worker.wake()
    await eventually(async () => {
      assert.deepEqual(await run(`select 1 from verify_run where status = 'RUNNING'`), [])
    })
    return await run(`select status, verdict from verify_run
                       where workspace_id = '${cold.id}' order by created_at`)
  }
  await run(`insert into verify_schedule (workspace_id, due_at)
             select id, case when id = '${cold.id}' then '${new Date(clock()).toISOString()}'
                             else '${new Date(clock() + DAY_MS).toISOString()}'::timestamptz end
               from workspace`)
  const [first, ...others] = await verifyDue()
  assert.equal(others.length, 0)
  assert.match(String(first?.['verdict']), /^Waiting for restore: the archived files from event 1/)
  const owner = await signInAs(annals, company, 'OWNER')
  assert.deepEqual(await noticesOf(owner), [])
  s3.finishRestore(path)
  // Earlier than the next day, because a restore takes only hours.
  advance(7 * HOUR_MS)
  const [, second] = await verifyDue()
  assert.equal(second?.['status'], 'HOLDS', String(second?.['verdict']))
})
