import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { sql } from 'kysely'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import {
  claimVerifyRun,
  insertVerifyRun,
  listBrokenRuns,
  RUNS_KEPT_PER_WORKSPACE,
} from '../../src/outlet/verify/verify-run-store.ts'
import { startVerifyWorker } from '../../src/outlet/verify/verify-run-worker.ts'
import { startVerifyScheduleWorker } from '../../src/outlet/verify/verify-schedule-worker.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { type ObjectStore, StorageError } from '../../src/platform/object-store/object-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { noticesOf } from '../harness/dashboard/notices.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
// As `api`, so that only the workers of a test create and take runs.
const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { pool, db } = annals.app.database
const logger = createLogger('silent')
const audit = createServiceAudit(Date.now)
let passedMs = 0
const clock = () => Date.now() + passedMs
let isStorageDown = false
const archive: ObjectStore = {
  ...annals.app.archive,
  read: async (key, signal) => {
    if (isStorageDown) throw new StorageError('The storage is down.', { summary: 'Down.' })
    return await annals.app.archive.read(key, signal)
  },
}
afterEach(async () => {
  passedMs = 0
  isStorageDown = false
  await query(annals.database.connection, 'delete from verify_schedule')
  await query(annals.database.connection, 'delete from verify_run')
})

/** What each of several nodes does when its schedule worker runs. */
async function schedule(nodes = 1): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const deps = { db, clock, logger, intervalMs: DAY_MS, onCreated: () => {} }
  const workers = Array.from({ length: nodes }, () => stack.use(startVerifyScheduleWorker(deps)))
  await Promise.all(workers.map((worker) => worker.runNow()))
}

/** Lets nodes work until no run is open. */
async function finishRuns(nodes = 1): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const deps = { pool, db, archive, clock, logger, audit, signed: null }
  for (let node = 0; node < nodes; node += 1) stack.use(startVerifyWorker(deps)).wake()
  await eventually(async () => assert.equal((await runsWith(`status = 'RUNNING'`)).length, 0))
}

async function runsWith(condition: string): Promise<Record<string, unknown>[]> {
  return await query(
    annals.database.connection,
    `select workspace_id, status from verify_run where ${condition} order by created_at`,
  )
}

async function setDue({ workspaces }: CreatedCompany): Promise<void> {
  const ids = workspaces.map(({ id }) => `('${id}', now() - interval '1 minute')`).join()
  await query(
    annals.database.connection,
    `insert into verify_schedule (workspace_id, due_at) values ${ids}
     on conflict (workspace_id) do update set due_at = excluded.due_at`,
  )
}

async function createWithEvent(
  workspaces: readonly [string, ...string[]] = ['Production'],
): Promise<CreatedCompany> {
  const company = await annals.createCompany({ workspaces })
  const body = { category: 'c', action: 'a' }
  await annals.call('POST', '/v1/events', { key: company.workspaceKey, body })
  return company
}

async function damage({ id }: { id: WorkspaceId }, action: string): Promise<void> {
  await asOwner(annals, (owner) =>
    sql`update event set action = ${action} where workspace_id = ${id}`.execute(owner),
  )
}

test('several nodes together verify each chain once per day', async () => {
  const company = await createWithEvent()
  const { id } = company.workspace
  const ofChain = `workspace_id = '${id}' and is_scheduled`
  await setDue(company)
  await Promise.all([schedule(3), schedule(3)])
  await finishRuns(2)
  await schedule(3)
  await finishRuns(2)
  assert.deepEqual(await runsWith(ofChain), [{ workspace_id: id, status: 'HOLDS' }])
  passedMs = DAY_MS
  // The company's audit log may be due before it.
  for (let pass = 0; pass < 3; pass += 1) {
    await schedule(3)
    await finishRuns()
  }
  assert.equal((await runsWith(ofChain)).length, 2)
})

test('a new chain is due at a time within the first day', async () => {
  const { workspace } = await createWithEvent()
  await schedule(2)
  const [row] = await query(
    annals.database.connection,
    `select due_at between now() - interval '1 minute' and now() + interval '1 day' as is_soon
       from verify_schedule where workspace_id = '${workspace.id}'`,
  )
  assert.equal(row?.['is_soon'], true)
})

test('a company with many chains has only one scheduled run at a time', async () => {
  const many = await createWithEvent(['W0', 'W1', 'W2'])
  const other = await createWithEvent()
  await Promise.all([setDue(many), setDue(other)])
  await schedule()
  const open = await runsWith(`status = 'RUNNING' and is_scheduled`)
  const ofMany = many.workspaces.filter(({ id }) => open.some((run) => run['workspace_id'] === id))
  assert.equal(ofMany.length, 1)
  assert(open.some((run) => run['workspace_id'] === other.workspace.id))
  for (let pass = 0; pass < 2; pass += 1) {
    await finishRuns()
    await schedule()
  }
  await finishRuns()
  for (const { id } of many.workspaces) {
    assert.equal((await runsWith(`workspace_id = '${id}'`)).length, 1)
  }
})

test('a run that a member requested comes first and never waits for scheduled ones', async () => {
  const company = await createWithEvent(['W0', 'W1', 'W2'])
  const [first, second, third] = company.workspaces.map(({ id }) => id)
  assert(first && second && third)
  const insert = async (
    workspaceId: WorkspaceId,
    createdBy: ReturnType<typeof newId<'user'>> | null,
  ) =>
    (
      await insertVerifyRun(db, {
        companyId: company.company.id,
        workspaceId,
        total: 0,
        createdBy,
        now: new Date(),
      })
    ).id
  const claim = async (mayBeScheduled = true) =>
    (await claimVerifyRun(db, new Date(), { mayBeScheduled }))?.id
  const scheduled = await insert(first, null)
  assert.equal(await claim(false), undefined)
  assert.equal(await claim(), scheduled)
  const waiting = await insert(second, null)
  const requested = await insert(third, newId<'user'>())
  assert.equal(await claim(), requested)
  assert.equal(await claim(), undefined, 'the other scheduled one waits for both')
  assert.notEqual(waiting, requested)
})

test('a chain that a member is verifying is scheduled again a few minutes later', async () => {
  const company = await createWithEvent()
  const { id } = company.workspace
  await setDue(company)
  const member = newId<'user'>()
  const run = { companyId: company.company.id, workspaceId: id, total: 0, createdBy: member }
  await insertVerifyRun(db, { ...run, now: new Date() })
  await schedule()
  assert.equal((await runsWith(`workspace_id = '${id}'`)).length, 1)
  await finishRuns()
  passedMs = 11 * 60_000
  // The company's audit log may be due before it.
  for (let pass = 0; pass < 2; pass += 1) {
    await schedule()
    await finishRuns()
  }
  assert.equal((await runsWith(`workspace_id = '${id}' and is_scheduled`)).length, 1)
})

test('a broken chain gets one notice in total, and one audit entry per run', async () => {
  const company = await createWithEvent()
  const owner = await signInAs(annals, company, 'OWNER')
  const verifyByDay = async () => {
    await setDue(company)
    await schedule()
    await finishRuns()
  }
  await verifyByDay()
  assert.deepEqual([await noticesOf(owner), await readAudit(annals, company)], [[], []])
  await damage(company.workspace, 'nothing')
  await verifyByDay()
  await verifyByDay()
  const notices = await noticesOf(owner)
  assert.deepEqual(
    notices.map(({ kind, link }) => [kind, link]),
    [['CHAIN_BROKEN', '/app/integrity']],
  )
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['VERIFY_FINISHED', 'VERIFY_FINISHED'])
})

test('consecutive failed runs of the schedule share one notice', async () => {
  const company = await createWithEvent()
  await archiveAll(annals)
  const owner = await signInAs(annals, company, 'OWNER')
  const verifyByDay = async (isDown: boolean) => {
    isStorageDown = isDown
    await setDue(company)
    await schedule()
    await finishRuns()
  }
  const kinds = async () => (await noticesOf(owner)).map(({ kind }) => kind)
  await verifyByDay(true)
  await verifyByDay(true)
  assert.deepEqual(await kinds(), ['VERIFY_FAILED'])
  await verifyByDay(false)
  assert.deepEqual(await kinds(), ['VERIFY_FAILED'])
  await verifyByDay(true)
  assert.deepEqual(await kinds(), ['VERIFY_FAILED', 'VERIFY_FAILED'])
})

test('keeps the last runs of each workspace, and the verdict that the dashboard warns about', async () => {
  const { company, workspace } = await createWithEvent()
  const values = { companyId: company.id, workspaceId: workspace.id, total: 0 }
  await query(
    annals.database.connection,
    `insert into verify_run (company_id, id, workspace_id, status, checked, total, created_at, beat_at)
     select '${company.id}', gen_random_uuid(), '${workspace.id}',
            case nth when 1 then 'BROKEN' else 'CANCELED' end, 0, 0,
            now() - interval '2 days' + nth * interval '1 minute', now()
       from generate_series(1, ${RUNS_KEPT_PER_WORKSPACE + 50}) as nth`,
  )
  await insertVerifyRun(db, { ...values, createdBy: newId<'user'>(), now: new Date() })
  const kept = await runsWith(`workspace_id = '${workspace.id}'`)
  assert.equal(kept.length, RUNS_KEPT_PER_WORKSPACE + 1)
  const [first] = kept
  assert.equal(first?.['status'], 'BROKEN')
  const chains = { companyId: company.id, workspaceIds: [workspace.id] }
  assert.equal((await listBrokenRuns(db, chains)).length, 1)
})

test('a period that holds does not end the warning about a broken chain', async () => {
  const { company, workspace } = await createWithEvent()
  const insert = (status: string, period: string, minutes: number) =>
    query(
      annals.database.connection,
      `insert into verify_run (company_id, id, workspace_id, status, checked, total, from_at, to_at, created_at, beat_at)
       values ('${company.id}', gen_random_uuid(), '${workspace.id}', '${status}', 0, 0, ${period},
               now() + interval '${minutes} minutes', now())`,
    )
  const chains = { companyId: company.id, workspaceIds: [workspace.id] }
  const brokenCount = async () => (await listBrokenRuns(db, chains)).length
  const march = `'2026-03-01Z', '2026-04-01Z'`
  await insert('BROKEN', march, 1)
  assert.equal(await brokenCount(), 1)
  await insert('HOLDS', march, 2)
  assert.equal(await brokenCount(), 1)
  await insert('HOLDS', 'null, null', 3)
  assert.equal(await brokenCount(), 0)
})
