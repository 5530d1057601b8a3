import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { kidOf } from '../../src/tenancy/key/key-text.ts'
import { deleteMember, updateMemberGrant } from '../../src/tenancy/member/member-store.ts'
import { deleteSessions } from '../../src/tenancy/sign-in/session-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { countLockWaits } from '../harness/database/company-lock.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const time = manualClock()
const annals = await startTestApp({ role: 'api', clock: time.clock })
after(() => annals[Symbol.asyncDispose]())

const tenant = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
const [production, staging] = tenant.workspaces.map(({ id }) => id)
assert(production && staging)
const event = { category: 'auth', action: 'login' }
const stored = await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, body: event })
assert.equal(stored.status, 201)

/** Longer than a request can take before its access is checked again. */
const SLOW_MS = 300
const READS = ['/dashboard/events', '/dashboard/events/filter-options?field=category']

/** Lets a search wait in the database, changes the caller's access, and lets the search continue. */
async function readLate(
  caller: Pick<Member, 'call'>,
  path: string,
  change: (db: Queryable) => Promise<unknown>,
  method = 'GET',
): Promise<TestResponse> {
  const { sent } = await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await sql`lock table chain_head, event, event_value, webhook_delivery in access exclusive mode`.execute(
        trx,
      )
      const startedAtMs = performance.now()
      const response = caller.call(method, path)
      await eventually(async () => assert((await countLockWaits(annals)) > 0))
      await change(annals.app.database.db)
      await eventually(() => assert(performance.now() - startedAtMs > SLOW_MS))
      return { sent: response }
    }),
  )
  return await sent
}

test('a query that the database cancels is not reported as an outage of the database', async () => {
  const caller: Pick<Member, 'call'> = {
    call: (method, path) => annals.call(method, path, { key: tenant.companyKey }),
  }
  const cancelWaiting = () =>
    query(
      annals.database.connection,
      `select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    )
  const { status, json } = await readLate(caller, '/v1/events', cancelWaiting)
  assert.equal(status, 503)
  assert.equal(json.code, 'unavailable')
  assert.match(json.error, /^The database did not complete this request\. Retry/)
})

for (const path of READS) {
  test(`a removed member gets nothing from GET ${path} that was still waiting`, async () => {
    const member = await signInAs(annals, tenant, 'VIEWER', [production])
    const { status } = await readLate(member, path, (db) => deleteMember(db, member.userId))
    assert.equal(status, 401)
  })
}

test('a member who signed out or lost a workspace gets nothing from a waiting search', async () => {
  const path = '/dashboard/events'
  const signedOut = await signInAs(annals, tenant, 'VIEWER', [production])
  const { userId } = signedOut
  const late = await readLate(signedOut, path, (db) => deleteSessions(db, { userId }))
  assert.equal(late.status, 401)
  const both = await signInAs(annals, tenant, 'ANALYST', [production, staging])
  const grant = { role: 'ANALYST' as const, workspaceIds: [staging] }
  const refused = await readLate(both, path, (db) => updateMemberGrant(db, both.userId, grant))
  assert.deepEqual([refused.status, refused.json.code], [403, 'insufficient_role'])
})

test('a member whose access did not change gets the result of a waiting search', async () => {
  const member = await signInAs(annals, tenant, 'VIEWER', [production])
  const { status, json } = await readLate(member, '/dashboard/events', async () => {})
  assert.deepEqual([status, json.data.length], [200, 1])
})

/** Longer than a node keeps a key in its cache. */
const KEY_CACHE_MS = 2_500

async function revoke(db: Queryable, key: string): Promise<void> {
  await db
    .updateTable('api_key')
    .set({ revoked_at: new Date(time.clock()) })
    .where('kid', '=', kidOf(key))
    .execute()
  time.advance(KEY_CACHE_MS)
}

test('a revoked key gets nothing from a search that was still waiting', async () => {
  const { workspace, workspaceKey, companyKey } = await annals.createCompany()
  const webhooks = `/v1/workspaces/${workspace.id}/webhooks`
  const created = await annals.call('POST', webhooks, {
    key: companyKey,
    body: { url: 'https://receiver.example/hook' },
  })
  assert.equal(created.status, 201, created.text)
  const reads = [
    { key: workspaceKey, path: '/v1/events' },
    { key: companyKey, path: `/v1/webhooks/${created.json.id}/deliveries` },
  ]
  for (const { key, path } of reads) {
    const caller: Pick<Member, 'call'> = {
      call: (method, url) => annals.call(method, url, { key }),
    }
    const allowed = await readLate(caller, path, async () => {})
    assert.equal(allowed.status, 200, allowed.text)
    const { status, json } = await readLate(caller, path, (db) => revoke(db, key))
    assert.deepEqual([status, json.code], [401, 'invalid_api_key'])
  }
})

test('a stored event is acknowledged even if its key was revoked meanwhile', async () => {
  const { workspaceKey } = await annals.createCompany()
  const { workspaceKey: batchKey } = await annals.createCompany()
  for (const { key, path, body, expected } of [
    { key: workspaceKey, path: '/v1/events', body: event, expected: 201 },
    { key: batchKey, path: '/v1/events/batch', body: { events: [event] }, expected: 200 },
  ]) {
    const caller: Pick<Member, 'call'> = {
      call: (method, url) => annals.call(method, url, { key, body }),
    }
    const { status, text } = await readLate(caller, path, (db) => revoke(db, key), 'POST')
    assert.equal(status, expected, text)
  }
})
