import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { updatePlan } from '../../src/tenancy/company-store.ts'
import { issueKey } from '../../src/tenancy/key/issue-key.ts'
import { kidOf } from '../../src/tenancy/key/key-text.ts'
import { enroll, openDashboardDownload } from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { openSource, type Source } from '../harness/http/event-source.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import {
  makeExport,
  openAccepted,
  openDownload,
  readJob,
  storeBulk,
} from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

/** The jobs whose downloads the service ended. */
const cutJobs = new Set<string>()
const logger = pino(
  { level: 'info', base: null },
  {
    write: (line) => {
      const { event, jobId } = JSON.parse(line)
      if (event === 'export.cut') cutJobs.add(jobId)
    },
  },
)
const annals = await startTestApp({ logger, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

/** The maximum time from the revocation to the end of the stream. */
const CUT_MS_MAX = 2_000
/** 15 MB, more than all buffers on the way, so that a client that doesn't read causes back-pressure. */
const ROWS = 300
const company = await annals.createCompany({ workspaces: ['First', 'Second'] })
const [first, second] = company.workspaces
assert(first && second)
const companyId = company.company.id
await storeBulk(annals, first.workspaceKey, ROWS)
const owner = await enroll(annals, company, 'OWNER')

/** Reads the first bytes and then stops, so that the service waits under back-pressure. */
async function startSlow(response: IncomingMessage): Promise<IncomingMessage> {
  assert.equal(response.statusCode, 200)
  await once(response, 'readable')
  return response
}

/**
 * Checks that the service closes the connection in time while the client isn't reading. When the client
 * reads again, it can tell that the file is incomplete.
 */
async function assertCut(
  response: IncomingMessage,
  jobId: string,
  change: () => Promise<unknown>,
): Promise<void> {
  assert(!cutJobs.has(jobId))
  await change()
  await until(() => cutJobs.has(jobId))
  response.resume()
  await eventually(() => assert(response.destroyed))
  assert.equal(response.complete, false)
}

const until = (check: () => boolean | Promise<boolean>) =>
  eventuallyWithin(CUT_MS_MAX, async () => assert(await check()))
const soon = () => new Date(Date.now() + 300)
const updateKey = (key: string, values: Record<string, Date | string | null>) =>
  db.updateTable('api_key').set(values).where('kid', '=', kidOf(key)).execute()

/** How a key loses access, and the reason in the audit log. */
const KEY_LOSSES: Record<string, { lose: (key: string) => Promise<unknown>; reason: string }> = {
  'is revoked': {
    lose: (key) => updateKey(key, { revoked_at: new Date() }),
    reason: 'invalid_api_key',
  },
  expires: { lose: (key) => updateKey(key, { expires_at: soon() }), reason: 'expired_api_key' },
  'was rotated and its grace period ends': {
    lose: (key) => updateKey(key, { grace_until: soon() }),
    reason: 'invalid_api_key',
  },
  'belongs to a company whose allowlist excludes the address': {
    lose: () => setAllowlist("allowlist = '{192.0.2.0/24}', allowlist_for_all_calls = true"),
    reason: 'ip_not_allowed',
  },
  'belongs to a company whose plan loses exports': {
    lose: () => updatePlan(db, { companyId, plan: 'FREE' }),
    reason: 'plan_required',
  },
  'moves to another workspace': {
    lose: (key) => updateKey(key, { workspace_id: second.id }),
    reason: 'not_found',
  },
}

async function setAllowlist(assignments: string): Promise<void> {
  const { connection } = annals.database
  await query(connection, `update company set ${assignments} where id = '${companyId}'`)
}

for (const [how, { lose, reason }] of Object.entries(KEY_LOSSES)) {
  test(`cuts a slow download within two seconds when its key ${how}`, async () => {
    const options = { companyId, workspaceId: first.id, name: how, expiresAt: null }
    const { text: key } = await db
      .transaction()
      .execute((trx) => issueKey(trx, options, Date.now()))
    const jobId = await makeExport(annals, key)
    const { response } = await openDownload(annals, key, jobId)
    await assertCut(await startSlow(response), jobId, () => lose(key))
    await eventually(async () => {
      const entries = (await readAudit(annals, company)).filter(
        ({ action, resource }) => action === 'EXPORT_DOWNLOAD_CUT' && resource.id === jobId,
      )
      assert.deepEqual(
        entries.map(({ metadata }) => metadata.reason),
        [reason],
      )
    })
    await until(async () => {
      const refused = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
      return refused.status >= 401 && refused.status <= 404
    })
    await updatePlan(db, { companyId, plan: 'ENTERPRISE' })
    await setAllowlist("allowlist = '{127.0.0.1/32}', allowlist_for_all_calls = false")
    await assertOpen(jobId)
  })
}

/** A caller with access can still download the job. */
async function assertOpen(jobId: string): Promise<void> {
  const { json } = await owner.call('GET', `/dashboard/exports/${jobId}`)
  assert.deepEqual([json.status, json.errorCode], ['RUNNING', null])
}

const SESSION_LOSSES: Record<string, (member: Member) => Promise<unknown>> = {
  'logs out': (member) => member.call('DELETE', '/dashboard/session'),
  'is removed': ({ userId }) => owner.call('DELETE', `/dashboard/members/${userId}`),
  'gets another role': ({ userId }) =>
    owner.call('PATCH', `/dashboard/members/${userId}`, { body: { role: 'VIEWER' } }),
  'loses a workspace': ({ userId }) =>
    db
      .deleteFrom('user_workspace')
      .where('user_id', '=', userId)
      .where('workspace_id', '=', first.id)
      .execute(),
  'has a session that expires': ({ userId }) =>
    db
      .updateTable('user_session')
      .set({ expires_at: soon() })
      .where('user_id', '=', userId)
      .execute(),
}

for (const [how, lose] of Object.entries(SESSION_LOSSES)) {
  test(`cuts a slow download and a live tail within two seconds when a member ${how}`, async () => {
    const member = await enroll(annals, company, 'ANALYST', first, second)
    const body = { source: 'HOT', format: 'JSONL' }
    const { json: job } = await member.call('POST', '/dashboard/exports', { body })
    const { response } = await openDashboardDownload(annals, member, job.id)
    const slow = await startSlow(response)
    await using tail = await openSource(annals, member)
    await using kept = await openSource(annals, owner)
    await until(() => tail.frames.length > 0)
    await assertCut(slow, job.id, () => lose(member))
    await until(() => tail.isOver())
    assert(tail.frames.some(({ event }) => event === 'end'))
    assert(!kept.isOver(), 'the owner continues')
    await assertOpen(job.id)
  })
}

test('cuts a dashboard download within two seconds when the plan loses exports', async () => {
  const member = await enroll(annals, company, 'ADMIN')
  const jobId = await makeExport(annals, company.companyKey)
  const { response } = await openDashboardDownload(annals, member, jobId)
  const slow = await startSlow(response)
  await assertCut(slow, jobId, () => updatePlan(db, { companyId, plan: 'FREE' }))
  const refused = await member.call('GET', `/dashboard/exports/${jobId}/download`)
  assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
  await updatePlan(db, { companyId, plan: 'ENTERPRISE' })
  await assertOpen(jobId)
})

test('cuts slow downloads within two seconds of a revocation while the pool is exhausted', async () => {
  const options = { companyId, workspaceId: first.id, name: 'exhausted', expiresAt: null }
  const { text: key } = await db.transaction().execute((trx) => issueKey(trx, options, Date.now()))
  const keyJobId = await makeExport(annals, key)
  const byKey = await startSlow((await openDownload(annals, key, keyJobId)).response)
  const member = await enroll(annals, company, 'ANALYST', first)
  const body = { source: 'HOT', format: 'JSONL' }
  const { json: job } = await member.call('POST', '/dashboard/exports', { body })
  const { response } = await openDashboardDownload(annals, member, job.id)
  const bySession = await startSlow(response)

  const { pool } = annals.app.database
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))
  const { connection } = annals.database
  try {
    // The clients get the data in flight. For the rest, the service waits three seconds for a
    // connection.
    for (const download of [byKey, bySession]) download.resume()
    await query(connection, `update api_key set revoked_at = now() where kid = '${kidOf(key)}'`)
    await query(connection, `delete from user_session where user_id = '${member.userId}'`)
    await until(() => byKey.destroyed && bySession.destroyed)
    assert(!byKey.complete && !bySession.complete)
  } finally {
    for (const client of clients) client.release()
  }
})

test('withholds unread events of a blocked live tail when its member is removed', async () => {
  const [slow, quick] = [
    await enroll(annals, company, 'VIEWER', second),
    await enroll(annals, company, 'VIEWER', second),
  ]
  await using blocked = await openSource(annals, slow)
  await using open = await openSource(annals, quick)
  await until(() => blocked.frames.length > 0 && open.frames.length > 0)
  blocked.pause()
  await storeBulk(annals, second.workspaceKey, ROWS)
  await eventually(() => assert(countEvents(open) > 0))
  for (const { userId } of [slow, quick]) {
    await owner.call('DELETE', `/dashboard/members/${userId}`)
  }
  await until(() => open.isOver())
  blocked.resume()
  await eventually(() => assert(blocked.isOver()))
  assert(countEvents(blocked) < ROWS, 'it never gets the rest')
})

function countEvents({ frames }: Source): number {
  return frames.filter(({ event }) => event === 'event').length
}

test('checks the access of forty streams in one statement', async () => {
  const jobId = await makeExport(annals, first.workspaceKey)
  const opened = await Promise.all(
    Array.from({ length: 40 }, () => openAccepted(annals, first.workspaceKey, jobId)),
  )
  for (const { response } of opened) await startSlow(response)
  const countReads = async () => {
    const [row] = await query(
      annals.database.connection,
      `select coalesce(sum(idx_scan + seq_scan), 0)::int as reads from pg_stat_user_tables
        where relname = 'api_key'`,
    )
    return Number(row?.['reads'])
  }
  // PostgreSQL can count the reads of opening the streams up to ten seconds later, so a later period counts.
  await eventually(async () => {
    const before = await countReads()
    const startedAtMs = performance.now()
    await eventually(() => assert(performance.now() - startedAtMs > 2_000))
    const reads = (await countReads()) - before
    const seconds = (performance.now() - startedAtMs) / 1_000
    // One statement for all streams per check. One per stream would be 40 per check.
    assert(reads < 10 * seconds, `${reads} reads in ${seconds} seconds`)
  })
  for (const { leave } of opened) leave()
  const { status } = await readJob(annals, first.workspaceKey, jobId)
  assert.equal(status, 'RUNNING')
})
