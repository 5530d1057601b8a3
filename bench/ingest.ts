import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEngine } from '../server/src/platform/engine/embedded-postgres.ts'
import type { EngineConnection } from '../server/src/platform/engine/presence.ts'
import { asOwner, multiNodeEnv, readSettings, SECRET_KEY, warmUpEngine } from './lib/engine.ts'
import { type LoadResult, requestBytes, runLoad } from './lib/http-load.ts'
import { postgresCpuUs, rssBytesOf, serviceCpuUs } from './lib/processes.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { sampleEvent } from './lib/sample-event.ts'
import {
  annals,
  postmasterPid,
  readHistogram,
  readTriesMax,
  type Service,
  startAnnals,
  startProgram,
} from './lib/service.ts'
import { verifyWritten } from './lib/verify-written.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 8)
const WARM_UP_SECONDS = Math.min(4, SECONDS)
const WORKSPACES = 20
const BATCH_EVENTS = 200
const WRITERS = 4

type Tenant = { key: string; workspaceId: string }
type Row = { name: string; connections: number; batchEvents: number; triesMax: number } & Measured
type Measured = {
  perSecond: number
  p50Ms: number
  p99Ms: number
  nodeUs: number
  postgresUs: number
  totalUs: number
  rssMb: number
  others: number
}

/**
 * `npm run bench -- ingest`: compares Annals with an echo server and two naive designs, on one engine.
 */
export async function benchIngest(only: string | undefined): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  const env = {
    ANNALS_DATA_DIR: dataDir,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_RATE_LIMITS: 'off',
  }
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const bench: Bench = {
      only,
      tenants: createTenants(env),
      postmaster: postmasterPid(dataDir),
      acknowledged: [],
      rows: [],
    }
    await asOwner(engine.connection, (client) => client.query('create database naive'))
    await warmUpEngine(engine.connection)
    await measureReferences(bench, engine.connection)
    await measureAnnals(bench, env)
    await measureProcesses(bench, env)
    await measureWriters(bench, engine.connection)
    const verified = await verifyWritten(engine.connection, bench.acknowledged, () =>
      annals(env, 'verify'),
    )
    finish(bench.rows, verified, await readSettings(engine.connection), only)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

type Bench = {
  /** Measures only the rows whose name contains this text. */
  only: string | undefined
  tenants: readonly Tenant[]
  postmaster: number
  /** The IDs of all events that Annals acknowledged. */
  acknowledged: string[]
  rows: Row[]
}

function createTenants(env: Record<string, string>): Tenant[] {
  const names = Array.from({ length: WORKSPACES }, (_, n) => [
    '--workspace',
    `Workspace ${n}`,
  ]).flat()
  const created = JSON.parse(annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE', ...names))
  return created.workspaces.map(({ id, workspaceKey }: { id: string; workspaceKey: string }) => ({
    key: workspaceKey,
    workspaceId: id,
  }))
}

async function measureReferences(bench: Bench, connection: EngineConnection): Promise<void> {
  {
    await using echo = await startProgram('bench/reference/echo.ts', {})
    await measure(bench, 'echo', [echo], { connections: 64, credential: 'workspaceId' })
  }
  for (const chain of ['', '1']) {
    const naive = await startProgram('bench/reference/naive.ts', {
      CONNECTION: JSON.stringify({ ...connection, database: 'naive' }),
      CHAIN: chain,
    })
    await using _stop = naive
    const suffix = chain ? 'naive, chained' : 'naive'
    await measure(bench, suffix, [naive], { connections: 64, credential: 'workspaceId' })
    if (chain)
      await measure(bench, 'naive, chained, one workspace', [naive], {
        connections: 64,
        spread: 1,
        credential: 'workspaceId',
      })
  }
}

async function measureAnnals(bench: Bench, env: Record<string, string>): Promise<void> {
  await using service = await startAnnals(env)
  await measure(bench, 'annals', [service], { connections: 64 })
  await measure(bench, 'annals', [service], { connections: 256 })
  await measure(bench, 'annals, one workspace', [service], { connections: 64, spread: 1 })
  await measure(bench, 'annals, batches', [service], { connections: 8, batch: BATCH_EVENTS })
  await measure(bench, 'annals, overload', [service], { connections: 1_280 })
}

async function measureProcesses(bench: Bench, env: Record<string, string>): Promise<void> {
  for (const count of [1, 2]) {
    await using service = await startAnnals({ ...env, ANNALS_API_PROCESSES: String(count) })
    await measure(bench, `annals, processes: ${count}`, [service], { connections: 64 })
  }
}

async function measureWriters(bench: Bench, connection: EngineConnection): Promise<void> {
  const nodeEnv = multiNodeEnv(connection)
  for (const count of [1, WRITERS]) {
    const nodes = await Promise.all(Array.from({ length: count }, () => startAnnals(nodeEnv)))
    await using stack = new AsyncDisposableStack()
    for (const node of nodes) stack.use(node)
    await measure(bench, `annals, writers: ${count}`, nodes, { connections: 64 })
  }
}

type MeasureOptions = {
  connections: number
  spread?: number
  credential?: 'key' | 'workspaceId'
  batch?: number
}

async function measure(
  { only, tenants, postmaster, acknowledged, rows }: Bench,
  name: string,
  services: readonly Service[],
  { connections, spread = WORKSPACES, credential = 'key', batch = 0 }: MeasureOptions,
): Promise<void> {
  if (only !== undefined && !name.includes(only)) return
  const load = (seconds: number) =>
    Promise.all(
      services.map((service) =>
        loadEvents(service.port, {
          connections: Math.ceil(connections / services.length),
          seconds,
          tenants: tenants.slice(0, spread),
          credential,
          batch,
          onId: (id) => (credential === 'key' ? acknowledged.push(id) : 0),
        }),
      ),
    )
  // Each process needs several thousand requests until the JIT compiler has warmed up.
  await load(WARM_UP_SECONDS * services.length)
  const batchesBefore = await readBatches(services)
  const before = readCpu(services, postmaster)
  const results = await load(SECONDS)
  const after = readCpu(services, postmaster)
  const batches = await readBatches(services)
  const count = batches.count - batchesBefore.count
  rows.push({
    name,
    connections,
    ...measured(results, services, before, after, batch),
    batchEvents: count === 0 ? 0 : (batches.sum - batchesBefore.sum) / count,
    triesMax: batches.triesMax,
  })
  process.stdout.write(`${table(rows.slice(-1))}\n`)
}

async function loadEvents(
  port: number,
  options: {
    connections: number
    seconds: number
    tenants: readonly Tenant[]
    credential: 'key' | 'workspaceId'
    batch: number
    onId: (id: string) => void
  },
): Promise<LoadResult> {
  let nth = Math.floor(Math.random() * 1e6)
  return await runLoad({
    port,
    connections: options.connections,
    durationMs: options.seconds * 1_000,
    request: (connection) => {
      nth += 1
      const tenant = options.tenants[(connection + nth) % options.tenants.length]
      const key = tenant?.[options.credential] ?? ''
      if (options.batch === 0) {
        return requestBytes('POST', '/v1/events', { key, body: JSON.stringify(sampleEvent(nth)) })
      }
      const events = Array.from({ length: options.batch }, (_, n) =>
        sampleEvent(nth * options.batch + n),
      )
      return requestBytes('POST', '/v1/events/batch', { key, body: JSON.stringify({ events }) })
    },
    onResponse: (status, body) => {
      if (status >= 300) return
      for (const [, id] of body.matchAll(/"id":"([^"]+)"/g)) options.onId(id ?? '')
    },
  })
}

/** The sizes of the commits, and the most tries that one took, over all nodes. */
async function readBatches(services: readonly Service[]) {
  const sizes = await Promise.all(
    services.map((s) => readHistogram(s, 'annals_batch_commit_events')),
  )
  const tries = await Promise.all(services.map((s) => readTriesMax(s)))
  return {
    sum: sizes.reduce((total, { sum }) => total + sum, 0),
    count: sizes.reduce((total, { count }) => total + count, 0),
    triesMax: Math.max(...tries),
  }
}

function readCpu(services: readonly Service[], postmaster: number) {
  return {
    node: services.reduce((sum, { pid }) => sum + serviceCpuUs(pid), 0),
    postgres: postgresCpuUs(postmaster),
  }
}

function measured(
  results: readonly LoadResult[],
  services: readonly Service[],
  before: { node: number; postgres: number },
  after: { node: number; postgres: number },
  batch: number,
): Measured {
  const perResponse = Math.max(1, batch)
  const accepted = results.reduce(
    (sum, { acceptedPerSecond, seconds }) => sum + acceptedPerSecond * seconds,
    0,
  )
  const events = accepted * perResponse
  const nodeUs = (after.node - before.node) / events
  const postgresUs = (after.postgres - before.postgres) / events
  return {
    perSecond:
      results.reduce((sum, { acceptedPerSecond }) => sum + acceptedPerSecond, 0) * perResponse,
    p50Ms: Math.max(...results.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...results.map(({ acceptedP99Ms }) => acceptedP99Ms)),
    nodeUs,
    postgresUs,
    totalUs: nodeUs + postgresUs,
    rssMb: Math.max(...services.map(({ pid }) => rssBytesOf(pid))) / 2 ** 20,
    others: results.reduce((sum, { requests }) => sum + requests, 0) - Math.round(accepted),
  }
}

function finish(
  rows: readonly Row[],
  verified: string,
  settings: Record<string, string>,
  only: string | undefined,
): void {
  const of = (name: string, connections: number) =>
    rows.find((row) => row.name === name && row.connections === connections)
  const ratio = (a?: Row, b?: Row, field: 'perSecond' | 'totalUs' = 'perSecond') =>
    a && b ? Number((a[field] / b[field]).toFixed(3)) : null
  const ours = of('annals', 64)
  const ratios = {
    'CPU to naive (≤ 0.6)': ratio(ours, of('naive', 64), 'totalUs'),
    'CPU to naive chained (≤ 0.3)': ratio(ours, of('naive, chained', 64), 'totalUs'),
    'events/s to naive chained (≥ 3.5)': ratio(ours, of('naive, chained', 64)),
    'events/s to naive chained, one workspace (≥ 6)': ratio(
      of('annals, one workspace', 64),
      of('naive, chained, one workspace', 64),
    ),
    'events/s to echo (≥ 0.2)': ratio(ours, of('echo', 64)),
    'one workspace to twenty (≥ 0.9)': ratio(of('annals, one workspace', 64), ours),
    'four writers to one (≥ 0.8)': ratio(
      of('annals, writers: 4', 64),
      of('annals, writers: 1', 64),
    ),
    'CPU of two processes to one (≤ 1.1)': ratio(
      of('annals, processes: 2', 64),
      of('annals, processes: 1', 64),
      'totalUs',
    ),
    'overload goodput to peak (≥ 0.8)': ratio(of('annals, overload', 1_280), of('annals', 256)),
  }
  process.stdout.write(`\n${table(rows)}\n\n`)
  for (const [name, value] of Object.entries(ratios)) process.stdout.write(`${name}: ${value}\n`)
  process.stdout.write(`${verified}\n`)
  if (only !== undefined) return
  const path = saveResult('ingest', {
    ...benchEnvironment(settings),
    seconds: SECONDS,
    rows,
    ratios,
    verified,
  })
  process.stdout.write(`saved ${path}\n`)
}
