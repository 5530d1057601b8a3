import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { claimVerifyRun } from '../../src/outlet/verify/verify-run-store.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const logLines: string[] = []
const logger = pino({ level: 'error' }, { write: (line) => void logLines.push(line) })
const annals = await startTestApp({ logger })
after(() => annals[Symbol.asyncDispose]())
const owner = new Database({
  connection: annals.database.connection,
  role: 'owner',
  connectionsMax: 1,
  logger: createLogger('silent'),
})
after(() => owner[Symbol.asyncDispose]())

async function createWithEvents(count: number) {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const events = Array.from({ length: count }, (_, nth) => ({ category: 'c', action: `a${nth}` }))
  const { json } = await annals.call('POST', '/v1/events/batch', {
    key: company.workspaceKey,
    body: { events },
  })
  const ids: string[] = json.results.map(({ id }: { id: string }) => id)
  return { company, workspaceId: company.workspace.id, ids }
}

type Caller = Awaited<ReturnType<typeof signInAs>>

async function verdictOf(caller: Caller, workspaceId: string) {
  const started = await caller.call('POST', '/dashboard/integrity/runs', { body: { workspaceId } })
  assert.equal(started.status, 201, started.text)
  return await eventually(async () => {
    const { json } = await caller.call('GET', `/dashboard/integrity/runs/${started.json.id}`)
    assert.notEqual(json.status, 'RUNNING')
    return json
  })
}

test('verifying a valid chain reports so, and shows its head', async () => {
  const { company, workspaceId, ids } = await createWithEvents(7)
  const analyst = await signInAs(annals, company, 'ANALYST', [workspaceId])
  const run = await verdictOf(analyst, workspaceId)
  assert.equal(run.status, 'HOLDS')
  assert.equal(run.checked, 7)
  assert.match(run.verdict, /All 7 events are intact/)
  const { json } = await analyst.call('GET', '/dashboard/integrity')
  assert.equal(json.chains.length, 1, 'only the assigned workspace')
  assert.equal(json.chains[0].seq, 7)
  assert.equal(json.chains[0].lastEventId, ids[6])
  assert.deepEqual(json.chains[0].lastRun, run)
})

test('the verdict names an event that was edited in the database', async () => {
  const { company, workspaceId, ids } = await createWithEvents(5)
  const admin = await signInAs(annals, company, 'ADMIN')
  await sql`update event set action = 'nothing' where id = ${ids[2]}`.execute(owner.db)
  const run = await verdictOf(admin, workspaceId)
  assert.equal(run.status, 'BROKEN')
  assert.equal(run.badSeq, 3)
  assert.equal(run.badEventId, ids[2])
  assert.match(run.verdict, /broken at event 3/)
})

test('a chain is listed as broken until a later run finds it intact', async () => {
  const { company, workspaceId, ids } = await createWithEvents(2)
  const admin = await signInAs(annals, company, 'ADMIN')
  const staging = company.workspaces[1]?.id
  assert(staging)
  const onlyStaging = await signInAs(annals, company, 'VIEWER', [staging])
  const brokenFor = async (caller: Caller) =>
    (await caller.call('GET', '/dashboard/integrity/broken')).json.runs
  await verdictOf(admin, staging)
  assert.deepEqual(await brokenFor(admin), [])
  const rename = (action: string) =>
    sql`update event set action = ${action} where id = ${ids[1]}`.execute(owner.db)
  await rename('nothing')
  const run = await verdictOf(admin, workspaceId)
  await sql`
    insert into verify_run (company_id, id, workspace_id, status, checked, total, created_at, beat_at)
    values (${company.company.id}, gen_random_uuid(), ${workspaceId}, 'CANCELED', 0, 2, now(), now())`.execute(
    owner.db,
  )
  assert.deepEqual(await brokenFor(admin), [run])
  assert.deepEqual(await brokenFor(onlyStaging), [])
  await rename('a1')
  await verdictOf(admin, workspaceId)
  assert.deepEqual(await brokenFor(admin), [])
})

test('the verdict of a run is in the audit log, with the first bad event if the chain is broken', async () => {
  const { company, workspaceId, ids } = await createWithEvents(4)
  const admin = await signInAs(annals, company, 'ADMIN')
  const intact = await verdictOf(admin, workspaceId)
  await sql`update event set action = 'nothing' where id = ${ids[1]}`.execute(owner.db)
  const broken = await verdictOf(admin, workspaceId)
  const entries = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'VERIFY_FINISHED',
  )
  const entryOf = (metadata: object) => ({
    action: 'VERIFY_FINISHED',
    actor: { id: 'annals', role: 'service' },
    resource: { type: 'workspace', id: workspaceId },
    metadata,
  })
  assert.deepEqual(entries, [
    entryOf({ runId: intact.id, status: 'HOLDS', verdict: intact.verdict, events: 4 }),
    entryOf({
      runId: broken.id,
      status: 'BROKEN',
      verdict: broken.verdict,
      events: 1,
      seq: 2,
      eventId: ids[1],
    }),
  ])
})

test('a run ends with its verdict even if the audit log is too damaged for an entry', async () => {
  const { company, workspaceId } = await createWithEvents(2)
  const admin = await signInAs(annals, company, 'ADMIN')
  await sql`
    delete from chain_head
     where workspace_id = (select id from workspace
                            where company_id = ${company.company.id} and kind = 'SYSTEM')`.execute(
    owner.db,
  )
  const { rows } = await sql<{ id: string }>`
    insert into verify_run (company_id, id, workspace_id, status, checked, total, created_at, beat_at)
    values (${company.company.id}, gen_random_uuid(), ${workspaceId}, 'RUNNING', 0, 2, now(),
            now() - interval '1 minute') returning id`.execute(owner.db)
  await eventually(async () => {
    const { json } = await admin.call('GET', `/dashboard/integrity/runs/${rows[0]?.id}`)
    assert.deepEqual([json.status, json.checked], ['HOLDS', 2])
  })
  assert.deepEqual(await readAudit(annals, company), [])
})

test('a run stays open while its entry can not be stored, and then has both', async () => {
  const { company, workspaceId } = await createWithEvents(2)
  const admin = await signInAs(annals, company, 'ADMIN')
  const abandon = (id: string) =>
    sql`update verify_run set beat_at = now() - interval '1 minute' where id = ${id}`.execute(
      owner.db,
    )
  const failures = () => logLines.filter((line) => line.includes('"loop":"verify-run"')).length
  const before = failures()
  await sql`revoke insert on event from annals_serving`.execute(owner.db)
  let id = ''
  try {
    const { rows } = await sql<{ id: string }>`
      insert into verify_run (company_id, id, workspace_id, status, checked, total, created_at, beat_at)
      values (${company.company.id}, gen_random_uuid(), ${workspaceId}, 'RUNNING', 0, 2, now(),
              now() - interval '1 minute') returning id`.execute(owner.db)
    id = rows[0]?.id ?? ''
    await eventually(() => assert(failures() > before))
  } finally {
    await sql`grant insert on event to annals_serving`.execute(owner.db)
  }
  const path = `/dashboard/integrity/runs/${id}`
  assert.equal((await admin.call('GET', path)).json.status, 'RUNNING')
  await abandon(id)
  await eventually(async () => assert.equal((await admin.call('GET', path)).json.status, 'HOLDS'))
  const [entry] = await readAudit(annals, company)
  assert.deepEqual([entry?.action, entry?.metadata.runId], ['VERIFY_FINISHED', id])
})

test('a run is in the audit log, and a concurrent second one is rejected', async () => {
  const { company, workspaceId } = await createWithEvents(1)
  const admin = await signInAs(annals, company, 'ADMIN')
  await sql`
    insert into verify_run (company_id, id, workspace_id, status, checked, total, created_at, beat_at)
    values (${company.company.id}, gen_random_uuid(), ${workspaceId}, 'RUNNING', 0, 1, now(),
            now() + interval '1 hour')`.execute(owner.db)
  const second = await admin.call('POST', '/dashboard/integrity/runs', { body: { workspaceId } })
  assert.equal(second.status, 409)
  assert.match(second.json.error, /already being verified/)
  const { json } = await admin.call('GET', '/dashboard/integrity/runs')
  const cancel = () => admin.call('POST', `/dashboard/integrity/runs/${json.runs[0].id}/cancel`)
  const canceled = await cancel()
  assert.equal(canceled.json.status, 'CANCELED')
  assert.equal((await cancel()).status, 409)
  await verdictOf(admin, workspaceId)
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['VERIFY_CANCELED', 'VERIFY_STARTED', 'VERIFY_FINISHED'])
})

test('another node restarts the run of a node that died', async () => {
  const { company, workspaceId } = await createWithEvents(3)
  const admin = await signInAs(annals, company, 'ADMIN')
  const inserted = await sql<{ id: string }>`
    insert into verify_run (company_id, id, workspace_id, status, checked, total, created_at, beat_at)
    values (${company.company.id}, gen_random_uuid(), ${workspaceId}, 'RUNNING', 1, 3, now(),
            now() - interval '1 minute') returning id`.execute(owner.db)
  await eventually(async () => {
    const path = `/dashboard/integrity/runs/${inserted.rows[0]?.id}`
    assert.equal((await admin.call('GET', path)).json.status, 'HOLDS')
  })
  assert.equal(await claimVerifyRun(annals.app.database.db, new Date()), null)
})

test('a viewer can see runs but not start them, and never those of another company', async () => {
  const { company, workspaceId } = await createWithEvents(1)
  const viewer = await signInAs(annals, company, 'VIEWER', [workspaceId])
  const admin = await signInAs(annals, company, 'ADMIN')
  const refused = await viewer.call('POST', '/dashboard/integrity/runs', { body: { workspaceId } })
  assert.equal(refused.status, 403)
  assert.equal(refused.json.code, 'insufficient_role')
  const run = await verdictOf(admin, workspaceId)
  const stranger = await signInAs(annals, await annals.createCompany(), 'OWNER')
  const staging = company.workspaces[1]?.id
  const onlyStaging = await signInAs(annals, company, 'ANALYST', staging ? [staging] : [])
  const unknown = '00000000-0000-7000-8000-000000000000'
  for (const caller of [stranger, onlyStaging]) {
    const responses = await Promise.all(
      [run.id, unknown, 'no-id'].map((id) => caller.call('GET', `/dashboard/integrity/runs/${id}`)),
    )
    for (const { status, json } of responses) {
      assert.equal(status, 404)
      assert.equal(json.error, responses[1]?.json.error)
    }
    const start = await caller.call('POST', '/dashboard/integrity/runs', { body: { workspaceId } })
    assert.equal(start.status, 404)
  }
})

test('a member verifies a period and sees who verified what', async () => {
  const { company, workspaceId } = await createWithEvents(3)
  const analyst = await signInAs(annals, company, 'ANALYST', [workspaceId])
  const nowMs = Date.now()
  const at = (hours: number) => new Date(nowMs + hours * 3_600_000).toISOString()
  const start = (body: object) =>
    analyst.call('POST', '/dashboard/integrity/runs', { body: { workspaceId, ...body } })
  const refused = [
    { from: at(-1) },
    { to: at(0) },
    { from: at(0), to: at(-1) },
    { from: at(1), to: at(2) },
    { from: 'yesterday', to: at(0) },
  ]
  for (const body of refused) {
    const { status, json } = await start(body)
    assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(body))
  }
  const started = await start({ from: at(-1), to: at(5) })
  assert.equal(started.status, 201, started.text)
  const path = `/dashboard/integrity/runs/${started.json.id}`
  const run = await eventually(async () => {
    const { json } = await analyst.call('GET', path)
    assert.equal(json.status, 'HOLDS')
    return json
  })
  assert.deepEqual([run.from, run.firstSeq, run.lastSeq, run.checked], [at(-1), 1, 3, 3])
  assert(Date.parse(run.to) < Date.parse(at(1)), 'a time in the future means now')
  assert.deepEqual(run.createdBy, { kind: 'MEMBER', email: analyst.email })
  assert.match(run.verdict, /All 3 events of this period are intact/)
  const [entry] = await readAudit(annals, company)
  const { runId, from, to, events } = entry?.metadata ?? {}
  assert.deepEqual([runId, from, to, events], [run.id, run.from, run.to, undefined])
  const { json: before } = await analyst.call('GET', '/dashboard/integrity')
  assert.equal(before.chains[0].lastRun, null, 'a period says nothing about the whole chain')
  const whole = await verdictOf(analyst, workspaceId)
  const list = async (query: string) =>
    (await analyst.call('GET', `/dashboard/integrity/runs?${query}`)).json.runs
  assert.deepEqual(await list('limit=1'), [whole])
  assert.deepEqual(await list(`before=${whole.id}`), [run])
  const stranger = await signInAs(annals, await annals.createCompany(), 'OWNER')
  const foreign = await stranger.call('GET', `/dashboard/integrity/runs?before=${whole.id}`)
  assert.equal(foreign.status, 404)
})

test('the list is empty and says why if the table of runs is missing', async () => {
  const { company } = await createWithEvents(1)
  const admin = await signInAs(annals, company, 'ADMIN')
  await sql`alter table verify_run rename to verify_run_of_tomorrow`.execute(owner.db)
  try {
    for (const path of ['', '/runs', '/broken'].map((end) => `/dashboard/integrity${end}`)) {
      const { status, headers } = await admin.call('GET', path)
      assert.equal(status, 200)
      assert.equal(headers.get('x-service-schema-drift'), 'verify_run')
    }
  } finally {
    await sql`alter table verify_run_of_tomorrow rename to verify_run`.execute(owner.db)
  }
})
