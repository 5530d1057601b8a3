import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { FeedWaiters } from '../../src/outlet/feed/feed-waiters.ts'
import { type CompanyId, newId, type WorkspaceId } from '../../src/platform/id.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { updatePlan } from '../../src/tenancy/company-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { issueKey } from '../../src/tenancy/key/issue-key.ts'
import { kidOf } from '../../src/tenancy/key/key-text.ts'
import { query } from '../harness/database/engine.ts'
import {
  eventually,
  eventuallyWithin,
  oneOfManyWithin,
  TurnClock,
  within,
} from '../harness/timing/eventually.ts'
import { makeExport, openDownload, storeBulk, storeEvents } from '../harness/export/exports.ts'
import { feedPath, openFeed, readFeed } from '../harness/event/feed.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

const logger = pino({ level: 'silent' })
const annals = await startTestApp({ logger, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const { connection } = annals.database

const WAITING_PER_KEY_MAX = 10
const WAITING_MAX = 1_000
const POLL_MS = 200
/** From the loss of access to the response. */
const LOST_MS_MAX = 2_000
const EVENT = { category: 'c', action: 'a' }

type Reader = { key: string; workspaceId: string }

const wait = (
  reader: Reader,
  { after = 0, from = annals }: { after?: number; from?: TestApp } = {},
) => readFeed(from, reader, { after, waitSeconds: 30 })

async function createReader(): Promise<Reader> {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  return { key, workspaceId: workspace.id }
}

/** Resolves when this many requests wait, on this node or another. */
async function untilWaiting(count: number, { app }: TestApp = annals): Promise<void> {
  await eventually(async () =>
    assert.equal((await app.metrics.feedsWaiting.get()).values[0]?.value, count),
  )
}

const countTimers = () =>
  process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

async function issue(companyId: CompanyId, workspaceId: WorkspaceId): Promise<string> {
  const options = { companyId, workspaceId, name: 'feed', expiresAt: null }
  const issuing = db.transaction().execute((trx) => issueKey(trx, options, Date.now()))
  return (await issuing).text
}

test('a waiting request returns the next event as soon as this node stores it', async () => {
  const reader = await createReader()
  using clock = new TurnClock()
  const timesMs: number[] = []
  for (let after = 0; after < 20; after += 1) {
    const waiting = wait(reader, { after })
    await untilWaiting(1)
    await storeEvents(annals, reader.key, [EVENT])
    const storedAtMs = clock.ms
    const { status, json } = await waiting
    timesMs.push(clock.ms - storedAtMs)
    assert.deepEqual([status, json.next, json.data.length], [200, after + 1, 1])
  }
  // The median, because a busy machine can delay PostgreSQL.
  assert((timesMs.toSorted((a, b) => a - b)[10] ?? 0) < 1_000, timesMs.join())
})

test('a commit of this node ends a wait even if no poll can', async () => {
  await using stack = new AsyncDisposableStack()
  const options = { connection, role: 'annals_serving', connectionsMax: 1, logger } as const
  const busy = stack.use(new Database(options))
  const held = await busy.pool.connect()
  const waiters = stack.use(new FeedWaiters({ db: busy.db, logger, connectionsMax: 2_000 }))
  stack.defer(() => held.release())
  const { company, workspace } = await annals.createCompany()
  const reader = { companyId: company.id, keyId: newId<'key'>(), workspaceId: workspace.id }
  using listener = waiters.listen(reader)
  const signal = AbortSignal.timeout(25_000)
  const waiting = waiters.wait(listener, { afterSeq: 0, waitMs: 20_000, signal })
  assert.equal(waiters.size, 1)
  waiters.wakeFor([workspace.id])
  assert.equal(await waiting, true)
})

test('a waiting request returns an event that another node stores', async () => {
  await using other = await startTestApp({ databaseUrl: annals.database.url, logger })
  const reader = await createReader()
  let after = 0
  await oneOfManyWithin(2_000, async () => {
    const waiting = wait(reader, { after })
    await untilWaiting(1)
    await storeEvents(other, reader.key, [EVENT])
    const storedAtMs = performance.now()
    after += 1
    assert.equal((await waiting).json.next, after)
    return performance.now() - storedAtMs
  })
})

test('a request returns an empty page if no event arrives while it waits', async () => {
  const reader = await createReader()
  await storeEvents(annals, reader.key, [EVENT])
  const startedAtMs = performance.now()
  const { status, json } = await readFeed(annals, reader, { after: 1, waitSeconds: 1 })
  const tookMs = performance.now() - startedAtMs
  assert.deepEqual([status, json], [200, { data: [], next: 1 }])
  assert(tookMs >= 990 && tookMs < 25_000, `${tookMs} ms`)
})

test('a request returns immediately if there are events, however long it could wait', async () => {
  const reader = await createReader()
  await storeEvents(annals, reader.key, [EVENT, EVENT])
  const { json } = await within(5_000, wait(reader, { after: 1 }))
  assert.equal(json.next, 2)
})

test('waiting requests hold no database connection, and other requests are served', async () => {
  const { company, workspaces, companyKey } = await annals.createCompany({ workspaces: ['A', 'B'] })
  const [watched] = workspaces
  assert(watched)
  const keys = [companyKey]
  for (let nth = 0; nth < 5; nth += 1) keys.push(await issue(company.id, watched.id))
  const opened = keys.flatMap((key) =>
    Array.from({ length: WAITING_PER_KEY_MAX }, () =>
      openFeed(annals, feedPath(watched.id, { waitSeconds: 30 }), key),
    ),
  )
  await untilWaiting(opened.length)
  const { pool } = annals.app.database
  await eventually(() => assert.equal(pool.totalCount - pool.idleCount, 0))
  assert.equal((await annals.call('GET', '/v1/events', { key: companyKey })).status, 200)
  await storeEvents(annals, watched.workspaceKey, [EVENT])
  for (const { response } of opened) assert.equal((await response)?.[0].statusCode, 200)
})

test('a poll is one statement for all waiting requests, and none without them', async () => {
  const companies = await Promise.all(Array.from({ length: 20 }, () => annals.createCompany()))
  const statements: string[] = []
  const counted = db.withPlugin({
    transformQuery: ({ node }) => {
      statements.push(JSON.stringify(node))
      return node
    },
    transformResult: async ({ result }) => result,
  })
  await using waiters = new FeedWaiters({ db: counted, logger, connectionsMax: 2_000 })
  const left = new AbortController()
  const waiting = companies.map(async ({ company, workspace }) => {
    const reader = { companyId: company.id, keyId: newId<'key'>(), workspaceId: workspace.id }
    using listener = waiters.listen(reader)
    await waiters.wait(listener, { afterSeq: 0, waitMs: 30_000, signal: left.signal })
  })
  await eventually(() => assert(statements.length >= 3))
  left.abort()
  await Promise.allSettled(waiting)
  for (const statement of statements) {
    for (const { workspace } of companies) assert(statement.includes(workspace.id), statement)
  }
  const before = statements.length
  const startedAtMs = performance.now()
  await eventually(() => assert(performance.now() - startedAtMs > 3 * POLL_MS))
  assert.equal(statements.length, before)
})

test('a key can have ten waiting requests, and the next one gets a 429 with Retry-After', async () => {
  const { company, workspace, companyKey } = await annals.createCompany()
  const key = await issue(company.id, workspace.id)
  const waiting = Array.from({ length: WAITING_PER_KEY_MAX }, () =>
    wait({ key, workspaceId: workspace.id }),
  )
  await untilWaiting(WAITING_PER_KEY_MAX)
  const path = feedPath(workspace.id, { waitSeconds: 1 })
  const { status, json, headers } = await annals.call('GET', path, { key })
  assert.deepEqual([status, json.code], [429, 'rate_limited'])
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.match(json.error, /10 feed requests waiting/)
  // Other keys of the workspace can wait, and this one can read.
  const other = wait({ key: companyKey, workspaceId: workspace.id })
  assert.equal((await readFeed(annals, { key, workspaceId: workspace.id })).status, 200)
  await storeEvents(annals, key, [EVENT])
  for (const response of await Promise.all([...waiting, other])) assert.equal(response.status, 200)
})

test('a client that disconnects leaves no slot and no timer behind', async () => {
  const reader = await createReader()
  const path = feedPath(reader.workspaceId, { waitSeconds: 30 })
  const before = countTimers()
  for (let round = 0; round < 5; round += 1) {
    const opened = Array.from({ length: WAITING_PER_KEY_MAX }, () =>
      openFeed(annals, path, reader.key),
    )
    await untilWaiting(WAITING_PER_KEY_MAX)
    assert(countTimers() >= WAITING_PER_KEY_MAX, 'a timer per request')
    for (const { hangUp } of opened) hangUp()
    await untilWaiting(0)
  }
  assert(countTimers() < before + WAITING_PER_KEY_MAX, `${countTimers()} timers, ${before} before`)
})

const soon = () => new Date(Date.now() + 300)
const updateKey = (key: string, values: Record<string, Date | string | null>) =>
  db.updateTable('api_key').set(values).where('kid', '=', kidOf(key)).execute()

const LOSSES: Record<
  string,
  { lose: (key: string, other: string) => Promise<unknown>; refusal: [number, string] }
> = {
  'is revoked': {
    lose: (key) => updateKey(key, { revoked_at: new Date() }),
    refusal: [401, 'invalid_api_key'],
  },
  expires: {
    lose: (key) => updateKey(key, { expires_at: soon() }),
    refusal: [401, 'expired_api_key'],
  },
  'moves to another workspace': {
    lose: (key, other) => updateKey(key, { workspace_id: other }),
    refusal: [404, 'not_found'],
  },
  'belongs to a company that demands another address': {
    lose: (key) =>
      query(
        connection,
        `update company set allowlist = '{192.0.2.0/24}', allowlist_for_all_calls = true
          where id = (select company_id from api_key where kid = '${kidOf(key)}')`,
      ),
    refusal: [403, 'ip_not_allowed'],
  },
}

for (const [how, { lose, refusal }] of Object.entries(LOSSES)) {
  test(`a waiting request ends within two seconds when its key ${how}`, async () => {
    const { company, workspaces } = await annals.createCompany({ workspaces: ['A', 'B'] })
    const [first, second] = workspaces
    assert(first && second)
    const key = await issue(company.id, first.id)
    const waiting = wait({ key, workspaceId: first.id })
    await untilWaiting(1)
    let hasEnded = false
    void waiting.then(() => (hasEnded = true))
    await lose(key, second.id)
    await eventuallyWithin(LOST_MS_MAX, () => assert(hasEnded))
    const { status, json } = await waiting
    assert.deepEqual([status, json.code], refusal)
    await eventually(async () => {
      const next = await readFeed(annals, { key, workspaceId: first.id })
      assert.deepEqual([next.status, next.json.code], refusal)
    })
  })
}

test('a request whose plan loses exports while it waits still gets new events', async () => {
  const { company, workspace, workspaceKey: key } = await annals.createCompany({ plan: 'STARTER' })
  const waiting = wait({ key, workspaceId: workspace.id })
  await untilWaiting(1)
  await updatePlan(db, { companyId: company.id, plan: 'FREE' })
  await storeEvents(annals, key, [EVENT])
  assert.equal((await waiting).json.next, 1)
})

test('a request that waits beyond the end of a restored database is refused', async () => {
  const reader = await createReader()
  await storeEvents(annals, reader.key, [EVENT, EVENT])
  const waiting = wait(reader, { after: 2 })
  await untilWaiting(1)
  await query(
    connection,
    `update chain_head set seq = 1 where workspace_id = '${reader.workspaceId}'`,
  )
  const { status, json } = await waiting
  assert.deepEqual([status, json.code], [400, 'invalid_request'])
})

test('stopping ends waiting requests at once with an empty page, even during a download', async () => {
  const node = await startTestApp({ databaseUrl: annals.database.url, logger })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => node[Symbol.asyncDispose]())
  const { workspaces } = await annals.createCompany({ workspaces: ['A', 'B'] })
  const [quiet, busy] = workspaces
  assert(quiet && busy)
  await storeBulk(annals, busy.workspaceKey, 300)
  const jobId = await makeExport(node, busy.workspaceKey)
  const download = await openDownload(node, busy.workspaceKey, jobId)
  const reader = { key: quiet.workspaceKey, workspaceId: quiet.id }
  const waiting = wait(reader, { from: node })
  await untilWaiting(1, node)
  const stopping = node[Symbol.asyncDispose]()
  const { status, json } = await within(1_000, waiting)
  assert.deepEqual([status, json], [200, { data: [], next: 0 }])
  download.leave()
  await within(4_000, stopping)
})

test('a full node refuses the company with the most waiting requests, and makes room for others', async () => {
  const [most, other] = [await annals.createCompany(), await annals.createCompany()]
  await using waiters = new FeedWaiters({ db, logger, connectionsMax: 2 * WAITING_MAX })
  using listeners = new DisposableStack()
  const left = new AbortController()
  const waitAs = ({ company, workspace }: CreatedCompany) => {
    const reader = { companyId: company.id, keyId: newId<'key'>(), workspaceId: workspace.id }
    const listener = listeners.use(waiters.listen(reader))
    return waiters.wait(listener, { afterSeq: 0, waitMs: 600_000, signal: left.signal })
  }
  let ended = 0
  const waiting = Array.from({ length: WAITING_MAX }, () => waitAs(most))
  for (const one of waiting) void one.then(() => (ended += 1)).catch(() => {})
  assert.equal(waiters.size, WAITING_MAX)
  await assert.rejects(waitAs(most), { code: 'overloaded', status: 503, retryAfterSeconds: 5 })
  assert.equal(ended, 0)
  const admitted = waitAs(other)
  await eventually(() => assert.equal(ended, 1))
  waiters.wakeFor([other.workspace.id])
  assert.equal(await admitted, true)
  left.abort()
  await Promise.allSettled(waiting)
})
