import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../harness/app/start-app.ts'
import { ClusterServer } from '../harness/database/cluster.ts'
import { query } from '../harness/database/engine.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { serverListUrl, waitForStandby } from '../harness/database/standby.ts'
import { assertLedgerHolds } from '../harness/event/ledger-oracle.ts'
import { Load } from '../harness/event/load.ts'
import { eventually, withoutSlowdown } from '../harness/timing/eventually.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'

const ROUNDS = rounds(1, 20)
/** From the promotion, or from the moment when the address leads to the new primary if that is later. */
const RESUME_MS_MAX = 2_000
const CLIENTS_PER_NODE = 2
/** The primary waits for the standby of this name before it acknowledges a commit. */
const SYNCHRONOUS = 'standby'

/**
 * Three nodes on one cluster. One knows both servers. The address of the others moves to the new primary: of
 * one before the promotion, of the other after it.
 */
async function startNodes() {
  await using stack = new AsyncDisposableStack()
  const primary = await ClusterServer.startPrimary()
  const standby = await ClusterServer.startStandby(primary, SYNCHRONOUS)
  const servers = { primary, standby }
  stack.defer(async () => {
    await servers.primary[Symbol.asyncDispose]()
    await servers.standby[Symbol.asyncDispose]()
  })
  await waitForStandby(primary.connection, SYNCHRONOUS)
  const early = stack.use(await PgProxy.listen(primary.connection))
  const late = stack.use(await PgProxy.listen(primary.connection))
  const urls = [
    serverListUrl(primary.connection, standby.connection),
    early.urlTo(primary.connection),
    `${late.urlTo(primary.connection)}?target_session_attrs=read-write`,
  ]
  const loads: Load[] = []
  for (const databaseUrl of urls) {
    const options = { databaseUrl, role: 'api' as const, timeoutFactor: 1 }
    const env = { ANNALS_RATE_LIMITS: 'off' }
    const node = stack.use(await startTestApp({ ...options, env, hasArchive: false }))
    const { workspaces } = await node.createCompany()
    const load = new Load({ url: () => node.url, targets: workspaces, clients: CLIENTS_PER_NODE })
    loads.push(stack.use(load))
  }
  const kept = stack.move()
  return { servers, early, late, loads, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

type Nodes = Awaited<ReturnType<typeof startNodes>>

/** The times until each node stored an event on the new primary. */
async function failOver({ servers, early, late, loads }: Nodes): Promise<number[]> {
  const { primary, standby } = servers
  await Promise.all(loads.map((load) => load.waitForProgress(30)))
  await primary.kill()
  early.upstream = standby.connection
  const [listedLoad, earlyLoad, lateLoad] = loads
  assert(listedLoad && earlyLoad && lateLoad)
  const before = [listedLoad, earlyLoad].map(({ acknowledged }) => acknowledged)
  await query(standby.connection, 'select pg_promote()')
  const times = await Promise.all([
    untilStored(listedLoad, before[0]),
    untilStored(earlyLoad, before[1]),
  ])
  const lateBefore = lateLoad.acknowledged
  late.upstream = standby.connection
  times.push(await untilStored(lateLoad, lateBefore))
  return times
}

async function untilStored(load: Load, before = 0): Promise<number> {
  const startedAtMs = performance.now()
  await eventually(() => assert(load.acknowledged > before, load.describe()))
  const ms = performance.now() - startedAtMs
  assert(withoutSlowdown(ms, RESUME_MS_MAX) < RESUME_MS_MAX, `${ms} ms: ${load.describe()}`)
  return ms
}

/** The former primary comes back as the standby of the new one. */
async function rebuild({ servers }: Nodes): Promise<void> {
  const former = servers.primary
  servers.primary = servers.standby
  const folder = former.clear()
  servers.standby = await ClusterServer.startStandby(servers.primary, SYNCHRONOUS, { folder })
  await waitForStandby(servers.primary.connection, SYNCHRONOUS)
}

test(`events are stored within two seconds of a promotion, and none is lost or stored twice (${ROUNDS} times)`, async (t) => {
  await using nodes = await startNodes()
  const times: number[][] = []
  for (let round = 1; round <= ROUNDS; round += 1) {
    times.push(await failOver(nodes))
    if (round < ROUNDS) await rebuild(nodes)
  }
  await Promise.all(nodes.loads.map((load) => load.waitForProgress(30)))
  for (const [nth, name] of ['list', 'early', 'late'].entries()) {
    const own = times.map((each) => each[nth] ?? 0).toSorted((a, b) => a - b)
    const median = own[Math.floor(own.length / 2)] ?? 0
    t.diagnostic(
      `${name}: an event after ${Math.round(median)} ms (median), at most ${Math.round(own.at(-1) ?? 0)} ms`,
    )
  }
  await assertLedgerHolds(nodes.servers.standby.connection, nodes.loads)
})
