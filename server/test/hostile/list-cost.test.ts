import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createSessionAccess } from '../../src/edge/auth/session-access.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { insertSession, SESSIONS_MAX } from '../../src/tenancy/sign-in/session-store.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { copyRows } from '../harness/database/copy-rows.ts'
import { query } from '../harness/database/engine.ts'
import { HttpThread } from '../harness/http/http-thread.ts'
import { LoopProbe } from '../harness/timing/loop-probe.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
const client = new HttpThread()
after(async () => {
  await client[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})
const probe = new LoopProbe()

/** Of CPU time. The best of several tries counts, because garbage collection and compilation only add to it. */
const PIECE_MS_MAX = 20
const TRIES = 4
const DAYS = 400

const company = await annals.createCompany({
  workspaces: [
    'W0',
    ...Array.from({ length: COMPANY_BOUNDS.workspacesMax - 1 }, (_, nth) => `W${nth + 1}`),
  ],
})
const owner = await signInAs(annals, company, 'OWNER')
const workspaceIds = company.workspaces.map(({ id }) => id)
const viewer = await signInAs(annals, company, 'VIEWER', workspaceIds)
const { connection } = annals.database

async function assertShort(name: string, work: () => Promise<void>): Promise<void> {
  const triesMs: number[] = []
  while (triesMs.length < TRIES && !triesMs.some((ms) => ms <= PIECE_MS_MAX)) {
    triesMs.push(await probe.longestTurnMs(work))
  }
  assert(
    triesMs.some((ms) => ms <= PIECE_MS_MAX),
    `${name}: ${triesMs.map((ms) => ms.toFixed(1)).join(', ')} ms`,
  )
}

async function assertListShort(path: string, field: string, length: number): Promise<void> {
  const { cookie } = owner
  let received = ''
  await assertShort(path, async () => {
    const request = { url: `${annals.url}${path}`, method: 'GET', headers: { cookie } }
    const { status, text } = await client.call(request)
    assert.equal(status, 200, text)
    received = text
  })
  assert.equal(JSON.parse(received)[field].length, length)
}

test('the largest lists of members and invitations don’t block the main thread', async () => {
  const others = COMPANY_BOUNDS.membersMax - 3
  await copyRows(connection, {
    table: 'app_user',
    changes: `jsonb_build_object('id', gen_random_uuid(), 'email', nth || '@example.com')`,
    from: `app_user t, generate_series(1, ${others}) as nth where t.id = '${viewer.userId}'`,
  })
  await query(
    connection,
    `insert into user_workspace (user_id, workspace_id)
     select u.id, w.id from app_user u, workspace w
      where u.role = 'VIEWER' and w.kind = 'CUSTOMER' on conflict do nothing`,
  )
  await assertListShort('/dashboard/members', 'members', COMPANY_BOUNDS.membersMax)
  await query(
    connection,
    `insert into one_time_link (id, token_hash, created_at, expires_at, kind, company_id, email, role, workspace_ids)
     select gen_random_uuid(), sha256(nth::text::bytea), now(), now() + interval '6 days', 'INVITATION',
            '${company.company.id}', nth || '@example.com', 'VIEWER', '{${workspaceIds.join()}}'
       from generate_series(1, ${COMPANY_BOUNDS.membersMax}) as nth`,
  )
  await assertListShort('/dashboard/invitations', 'invitations', COMPANY_BOUNDS.membersMax)
})

test('the usage of all workspaces for the longest period doesn’t block the main thread', async () => {
  await query(
    connection,
    `insert into event_day (workspace_id, day, events, bytes)
     select w.id, d::date, 123456, 987654321
       from workspace w, generate_series(now() - interval '${DAYS - 1} days', now(), interval '1 day') as d
      where w.kind = 'CUSTOMER'`,
  )
  await assertListShort(`/dashboard/usage?days=${DAYS}`, 'days', DAYS * workspaceIds.length)
})

test('checking the access of 200 streams doesn’t block the main thread', async () => {
  const { db } = annals.app.database
  const tokens: string[] = []
  for (let members = 0; members < 4; members += 1) {
    const { userId } = await signInAs(annals, company, 'VIEWER', workspaceIds)
    for (let sessions = 0; sessions < SESSIONS_MAX; sessions += 1) {
      const session = { userId, address: '127.0.0.1', userAgent: 'test', nowMs: Date.now() }
      tokens.push((await insertSession(db, session)).token)
    }
  }
  const access = createSessionAccess(db, Date.now, createLogger('silent'))
  await assertShort('the check', async () => {
    using scope = new DisposableStack()
    await Promise.all(
      tokens.map((token) => {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        const watched = access.watch(
          token,
          (grant) => {
            assert.equal(grant?.workspaceIds.length, workspaceIds.length)
            resolve()
          },
          reject,
        )
        scope.use(watched)
        return promise
      }),
    )
  })
})
