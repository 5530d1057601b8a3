import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { checkReplica } from '../../src/command/doctor/check-replica.ts'
import { parseConfig } from '../../src/config.ts'
import { withTimeLimit } from '../../src/outlet/explorer/time-limit-store.ts'
import { openReplica } from '../../src/open-replica.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import { monotonicClock } from '../../src/platform/time/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { explore, readHistogram } from '../harness/dashboard/explorer.ts'
import { SECRET_KEY, startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { ClusterServer } from '../harness/database/cluster.ts'
import { query } from '../harness/database/engine.ts'
import { urlOf } from '../harness/database/template-db.ts'
import { makeExport } from '../harness/export/exports.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { TIMEOUT_FACTOR } from '../harness/timing/timeout-factor.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
let primary: ClusterServer
let replica: ClusterServer
/** Both read from the replica. */
let node: TestApp
let other: TestApp

before(async () => {
  primary = stack.use(await ClusterServer.startPrimary())
  replica = stack.use(await ClusterServer.startStandby(primary, 'replica'))
  node = stack.use(await startNode(primary, replica))
  other = stack.use(await startNode(primary, replica))
})

async function startNode(on: ClusterServer, reading: ClusterServer): Promise<TestApp> {
  const node = await startTestApp({
    databaseUrl: urlOf(on.connection),
    env: { ANNALS_DATABASE_REPLICA_URL: urlOf(reading.connection), ANNALS_RATE_LIMITS: 'off' },
    role: 'api',
    timeoutFactor: 1,
  })
  await untilUsed(node)
  return node
}

/** How many reads ran on the replica, or on the primary for a reason. */
const countOf = async ({ app }: TestApp, outcome: string): Promise<number> =>
  (await app.metrics.replicaReads.get()).values.find(({ labels }) => labels.outcome === outcome)
    ?.value ?? 0

const untilUsed = async ({ app }: TestApp) =>
  await eventually(async () => {
    const [sample] = (await app.metrics.replicaDown.get()).values
    assert.equal(sample?.value, 0)
  })

/** Runs `work`, all of whose reads must use the replica. A busy machine may pause it for a while. */
async function readFromReplica<T>(work: () => Promise<T>): Promise<T> {
  return await eventually(async () => {
    await untilUsed(node)
    const elsewhere = async () => {
      const { values } = await node.app.metrics.replicaReads.get()
      const others = values.filter(({ labels }) => labels.outcome !== 'replica')
      return others.reduce((sum, { value }) => sum + value, 0)
    }
    const before = [await countOf(node, 'replica'), await elsewhere()] as const
    const result = await work()
    assert((await countOf(node, 'replica')) > before[0])
    assert.equal(await elsewhere(), before[1])
    return result
  })
}

async function send({ call }: TestApp, key: string, action: string): Promise<string> {
  const { status, json, text } = await call('POST', '/v1/events', {
    key,
    body: { category: 'c', action },
  })
  assert.equal(status, 201, text)
  return json.id
}

async function list({ call }: TestApp, key: string, filters = ''): Promise<string[]> {
  const { status, json, text } = await call('GET', `/v1/events?limit=200${filters}`, { key })
  assert.equal(status, 200, text)
  return json.data.map(({ id }: { id: string }) => id)
}

test('queries, the explorer, histograms and exports read from the replica', async () => {
  const tenant = await node.createCompany()
  const key = tenant.workspaceKey
  const id = await send(node, key, 'a')
  assert.deepEqual(await readFromReplica(() => list(node, key)), [id])
  const companyKey = tenant.companyKey
  assert.deepEqual(await readFromReplica(() => list(node, companyKey, '&actorRole=none')), [])
  const member = await signInAs(node, tenant, 'ADMIN')
  const page = await readFromReplica(() => explore(member))
  assert.deepEqual(
    page.json.data.map((event: { id: string }) => event.id),
    [id],
  )
  const counts = await readFromReplica(() => readHistogram(member))
  assert.equal(counts.json.total, 1, counts.text)
  const jobId = await makeExport(node, key)
  const { text } = await readFromReplica(() =>
    node.call('GET', `/v1/exports/${jobId}/download`, { key }),
  )
  assert.match(text, new RegExp(id))
  const sessions = await query(
    replica.connection,
    `select from pg_stat_activity where application_name = 'annals replica'`,
  )
  assert(sessions.length > 0)
})

test('a company sees its own events only', async () => {
  const [first, second] = [await node.createCompany(), await node.createCompany()]
  const ids = [
    await send(node, first.workspaceKey, 'a'),
    await send(node, second.workspaceKey, 'a'),
  ]
  assert.deepEqual(await readFromReplica(() => list(node, first.companyKey)), [ids[0]])
  assert.deepEqual(await readFromReplica(() => list(node, second.companyKey)), [ids[1]])
  const workspaceId = first.workspace.id
  const path = `/v1/events?workspaceId=${workspaceId}`
  const refused = await node.call('GET', path, { key: second.companyKey })
  assert.equal(refused.status, 404)
})

/** What `annals doctor` says about a replica at this address. */
async function diagnoseReplica({ connection }: ClusterServer): Promise<string> {
  const config = parseConfig({
    ANNALS_DATABASE_URL: urlOf(primary.connection),
    ANNALS_DATABASE_REPLICA_URL: urlOf(connection),
    ANNALS_SECRET_KEY: SECRET_KEY,
  })
  const { status, message } = await checkReplica({ config, database: node.app.database })
  return `${status}: ${message}`
}

test('annals doctor reports a replica that is behind or not a standby', async () => {
  const { workspaceKey: key } = await node.createCompany()
  await send(node, key, 'a')
  await eventually(async () => {
    assert.match(await diagnoseReplica(replica), /^ok: .* has all events/)
  })
  assert.match(await diagnoseReplica(primary), /^warning: .* is not a standby/)
  await query(replica.connection, 'select pg_wal_replay_pause()')
  await send(node, key, 'b')
  assert.match(await diagnoseReplica(replica), /^warning: .* does not have the newest events/)
  await query(replica.connection, 'select pg_wal_replay_resume()')
})

/** Stores events on one node and looks for each on the other, until `work` ends. Every call must succeed. */
async function whileReading(work: () => Promise<void>): Promise<void> {
  const { workspaceKey: key } = await node.createCompany()
  const over = new AbortController()
  const follow = async (writer: TestApp, reader: TestApp): Promise<void> => {
    for (let nth = 0; !over.signal.aborted; nth += 1) {
      const id = await send(writer, key, `action ${nth}`)
      const found = await within(ANSWER_MS_MAX, list(reader, key, `&action=action%20${nth}`))
      assert(found.includes(id), 'a query sees every acknowledged event')
    }
  }
  const following = Promise.all([follow(node, other), follow(other, node), follow(node, node)])
  // If a follower fails, the work need not end.
  await Promise.race([work(), following])
  over.abort()
  await following
}

/** A replica that stops responding delays a read by less than this. */
const ANSWER_MS_MAX = 3_000

test('a query sees every acknowledged event while the replica does not replay', async () => {
  await repeatFault(async () => {
    await whileReading(async () => {
      const [before, behind] = [await countOf(other, 'replica'), await countOf(other, 'behind')]
      await eventually(async () => assert((await countOf(other, 'replica')) > before))
      await query(replica.connection, 'select pg_wal_replay_pause()')
      await eventually(async () => assert((await countOf(other, 'behind')) > behind))
      const paused = await countOf(other, 'paused')
      await eventually(async () => assert((await countOf(other, 'paused')) > paused + 10))
      await query(replica.connection, 'select pg_wal_replay_resume()')
      await untilUsed(other)
    })
  })
})

test('queries succeed while the replica is frozen, and use it again afterwards', async () => {
  await repeatFault(async () => {
    await whileReading(async () => {
      await Promise.all([untilUsed(node), untilUsed(other)])
      const failed = await countOf(other, 'failed')
      const paused = await countOf(other, 'paused')
      replica.freeze()
      await eventually(async () => {
        assert(
          (await countOf(other, 'failed')) + (await countOf(other, 'paused')) > failed + paused,
        )
      })
      await eventually(async () => assert((await countOf(other, 'paused')) > paused + 10))
      assert.equal((await node.call('GET', '/ready')).status, 200)
      replica.thaw()
      await Promise.all([untilUsed(node), untilUsed(other)])
    })
  })
})

test('a statement that the standby cancels, or that is slow there, runs on the primary', async () => {
  const { workspaceKey: key, workspace } = await node.createCompany()
  await send(node, key, 'a')
  const config = { replicaUrl: new Secret(urlOf(replica.connection)) }
  const { database } = node.app
  await using own = new AsyncDisposableStack()
  const logger = createLogger('silent')
  const cutSignal = new AbortController().signal
  const parts = { monotonic: monotonicClock, timeoutFactor: TIMEOUT_FACTOR, logger, cutSignal }
  const { replicaReads } = openReplica(own, { config, database, ...parts })
  assert(replicaReads)
  await eventually(() => assert(!replicaReads.isDown))
  await query(replica.connection, 'alter system set max_standby_streaming_delay = 0')
  await query(replica.connection, 'select pg_reload_conf()')
  await query(primary.connection, 'create table scratch as select generate_series(1, 1000)')
  const started = Promise.withResolvers<void>()
  const reading = replicaReads.read(workspace.id, async ({ db }) => {
    if (!db.isTransaction) return 'primary'
    started.resolve()
    await sql`select pg_sleep(30)`.execute(db)
    return 'replica'
  })
  await started.promise
  await query(primary.connection, 'delete from scratch')
  await query(primary.connection, 'vacuum scratch')
  assert.equal(await reading, 'primary')
  assert.equal(replicaReads.counts.get('conflict'), 1)
  // A search has a time limit, which is no reason for an error if the replica is slow.
  const search = await replicaReads.read(workspace.id, ({ db }) =>
    withTimeLimit(db, async (trx) => {
      await sql`select set_config('statement_timeout', '10', true)`.execute(trx)
      if (db.isTransaction) await sql`select pg_sleep(1)`.execute(trx)
      return 'primary'
    }),
  )
  assert.equal(search, 'primary')
  assert.equal(replicaReads.counts.get('slow'), 1)
  assert(!replicaReads.isDown)
})

/** Every answer until a read ran on the primary for this reason, without repetitions. */
async function listUntil(node: TestApp, key: string, outcome: string): Promise<string[][]> {
  const answers = new Map<string, string[]>()
  await eventually(async () => {
    const before = await countOf(node, outcome)
    const ids = await list(node, key)
    answers.set(ids.join(), ids)
    assert((await countOf(node, outcome)) > before)
  })
  return [...answers.values()]
}

test('events that only a replica of a former primary has are never returned', async () => {
  const tenant = await node.createCompany()
  const key = tenant.workspaceKey
  const kept = await send(node, key, 'kept')
  await using successor = await ClusterServer.startStandby(primary, 'successor')
  await query(successor.connection, 'select pg_promote()')
  await using moved = await startNode(successor, replica)
  // The former primary still runs, and the replica follows it.
  await send(node, key, 'lost')
  await eventually(async () => {
    const rows = await query(replica.connection, `select from event where action = 'lost'`)
    assert.equal(rows.length, 1)
  })
  assert.deepEqual(await listUntil(moved, key, 'ahead'), [[kept]])
  const next = await send(moved, key, 'next')
  assert.deepEqual(await listUntil(moved, key, 'failed'), [[next, kept]])
})

test('queries succeed while the replica is down', async () => {
  await whileReading(async () => {
    await replica.kill()
    const paused = await countOf(other, 'paused')
    await eventually(async () => assert((await countOf(other, 'paused')) > paused + 10))
  })
  assert.equal((await node.call('GET', '/ready')).status, 200)
  assert.match(await diagnoseReplica(replica), /^warning: Can't read from the replica/)
})
