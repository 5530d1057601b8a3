import { hash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEngine } from '../server/src/platform/engine/embedded-postgres.ts'
import { asOwner, type EngineConnection, multiNodeEnv, warmUpEngine } from './lib/engine.ts'
import { measureExplorerPages } from './lib/explorer-pages.ts'
import { percentile, requestBytes, runLoad } from './lib/http-load.ts'
import { measureLoginFlood } from './lib/login-flood.ts'
import { cpuUsOf, postgresCpuUs } from './lib/processes.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { sampleEvent } from './lib/sample-event.ts'
import { seedEvents } from './lib/seed-events.ts'
import { annals, postmasterPid, type Service, startAnnals } from './lib/service.ts'

const LARGE = Number(process.env.BENCH_EVENTS ?? 1_000_000)
const SPREAD_DAYS = 30
const WARM_UPS = 10
const REQUESTS = 100
const PAGES_DEEP = 200
const INGEST_SECONDS = Number(process.env.BENCH_SECONDS ?? 8)
const CATCH_UP_MS_MAX = 20 * 60_000
const DAY_MS = 86_400_000

type Tenant = { id: string; workspaceKey: string }
type CreatedTenant = { workspaces: Tenant[]; user: { email: string } }
type Row = { name: string; p50Ms: number; p95Ms: number; aimMs: number }
type IngestRow = {
  name: string
  perSecond: number
  p99Ms: number
  nodeUs: number
  postgresUs: number
}

/** `npm run bench -- console`: measures the explorer's queries, and what the rollup costs ingest. */
export async function benchConsole(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const { connection } = engine
    const env = multiNodeEnv(connection)
    const postmaster = postmasterPid(dataDir)
    const ingest = await measureIngest({ env, connection, postmaster })
    const flood = await measureLoginFlood({ env, seconds: INGEST_SECONDS })
    const tenant: CreatedTenant = JSON.parse(
      annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE', ...named(['A', 'B', 'C', 'D'])),
    )
    await using service = await startAnnals(env)
    for (const [index, { workspaceKey: key }] of tenant.workspaces.entries()) {
      await seedEvents(service, { key, count: index === 0 ? LARGE : LARGE / 4, days: SPREAD_DAYS })
    }
    const catchUpSeconds = await waitForRollup(connection)
    await asOwner(connection, (client) => client.query('vacuum (analyze)'))
    const cookie = await signIn(connection, tenant.user.email)
    const rows = await measureAll(service, cookie, tenant)
    const pages = await measureExplorerPages(service, {
      cookie,
      workspaceId: tenant.workspaces[0]?.id ?? '',
    })
    const verified = annals(env, 'verify').trim()
    const tables = [rows, pages, ingest, flood].map((part) => table(part)).join('\n\n')
    process.stdout.write(`\n${tables}\n\n${verified}\n`)
    const measured = { rows, pages, ingest, flood, catchUpSeconds }
    const result = { ...benchEnvironment({}), events: LARGE, ...measured, verified }
    process.stdout.write(`saved ${saveResult('console', result)}\n`)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function named(names: readonly string[]): string[] {
  return names.flatMap((name) => ['--workspace', name])
}

/** Measures ingest on one node, alone and then beside a node that counts the events. */
async function measureIngest({
  env,
  connection,
  postmaster,
}: {
  env: Record<string, string>
  connection: EngineConnection
  postmaster: number
}): Promise<IngestRow[]> {
  const { workspaces }: CreatedTenant = JSON.parse(
    annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE', ...named(['X', 'Y', 'Z'])),
  )
  await warmUpEngine(connection)
  const rows: IngestRow[] = []
  await using api = await startAnnals(env, 'api')
  const measure = async (name: string, services: readonly Service[]) => {
    const load = () =>
      runLoad({
        port: api.port,
        connections: 64,
        durationMs: INGEST_SECONDS * 1_000,
        request: (index, nth) => {
          const key = workspaces[index % workspaces.length]?.workspaceKey ?? ''
          const body = JSON.stringify(sampleEvent(index * 1_000_000 + nth))
          return requestBytes('POST', '/v1/events', { key, body })
        },
      })
    await load()
    const before = { node: nodeCpu(services), postgres: postgresCpuUs(postmaster) }
    const { perSecond, p99Ms, requests } = await load()
    rows.push({
      name,
      perSecond,
      p99Ms,
      nodeUs: (nodeCpu(services) - before.node) / requests,
      postgresUs: (postgresCpuUs(postmaster) - before.postgres) / requests,
    })
  }
  await measure('ingest alone', [api])
  {
    await using worker = await startAnnals(env, 'worker')
    await measure('ingest, counted', [api, worker])
  }
  await measure('ingest alone again', [api])
  return rows
}

function nodeCpu(services: readonly Service[]): number {
  return services.reduce((sum, { pid }) => sum + cpuUsOf(pid), 0)
}

async function waitForRollup(connection: EngineConnection): Promise<number> {
  const startedAt = performance.now()
  return await asOwner(connection, async (client) => {
    while (performance.now() - startedAt < CATCH_UP_MS_MAX) {
      // The rollup leaves short tails to be counted live.
      const { rows } = await client.query(
        `select 1 from chain_head h left join rollup_head r using (workspace_id)
          where h.seq - coalesce(r.seen_seq, 0) > 1000`,
      )
      if (rows.length === 0) return (performance.now() - startedAt) / 1_000
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
    throw new Error('the rollup did not catch up')
  })
}

async function signIn(connection: EngineConnection, email: string): Promise<string> {
  const token = randomBytes(32).toString('base64url')
  await asOwner(connection, (client) =>
    client.query(
      `insert into user_session (id, user_id, token_hash, created_at, seen_at, expires_at, address, user_agent)
       select gen_random_uuid(), id, $1, now(), now(), now() + interval '1 day', '127.0.0.1', 'bench'
         from app_user where email = $2`,
      [hash('sha256', token, 'buffer'), email],
    ),
  )
  return `annals_session=${token}`
}

function cases({ workspaces }: CreatedTenant): [name: string, path: string, aimMs: number][] {
  const nowMs = Date.now()
  const month = `from=${new Date(nowMs - 30 * DAY_MS).toISOString()}&to=${new Date(nowMs).toISOString()}`
  const one = `workspaceId=${workspaces[0]?.id}`
  const histogram = '/dashboard/events/metrics/histogram?'
  const options = '/dashboard/events/filter-options?'
  const events = '/dashboard/events?'
  return [
    ['histogram, by category', `${histogram}${month}&${one}&by=category`, 150],
    ['histogram, by action', `${histogram}${month}&${one}&by=action`, 150],
    ...['actorEmail', 'actorId', 'resourceType', 'projectId'].map(
      (field): [string, string, number] => [
        `histogram, by ${field}`,
        `${histogram}${month}&${one}&by=${field}`,
        800,
      ],
    ),
    ['histogram, 4 workspaces, by category', `${histogram}${month}&by=category`, 150],
    ['histogram, 4 workspaces, by action', `${histogram}${month}&by=action`, 150],
    ['histogram, one category', `${histogram}${month}&${one}&by=action&category=billing`, 150],
    ['histogram, one actor', `${histogram}${month}&${one}&by=action&actorId=usr_42`, 150],
    ['histogram, without an actor', `${histogram}${month}&${one}&not=actorId:usr_42`, 150],
    ['histogram, one day', `${histogram}${one}&by=category`, 150],
    ['histogram, rare text', `${histogram}${month}&${one}&text=USR_4242`, 150],
    ['histogram, frequent text', `${histogram}${month}&${one}&text=billing`, 1_000],
    ...[
      'category',
      'action',
      'actorId',
      'actorEmail',
      'resourceType',
      'resourceId',
      'projectId',
    ].map((field): [string, string, number] => [
      `options, ${field}`,
      `${options}${one}&field=${field}`,
      150,
    ]),
    ['options, action, 30 days', `${options}${one}&field=action&${month}`, 150],
    ['options, actorId, typed', `${options}${one}&field=actorId&contains=R_42`, 150],
    ['options, resourceId, 4 workspaces', `${options}field=resourceId`, 150],
    ['page', `${events}${one}`, 50],
    ['page, 4 workspaces', events, 50],
    ['page, one category', `${events}${one}&category=billing`, 50],
    ['page, one actor, 30 days', `${events}${one}&actorId=usr_42&${month}`, 50],
    ['page, rare text', `${events}${one}&text=Person4242%40`, 50],
    ['page, frequent text', `${events}${one}&text=deleted`, 50],
    ['page, text of nothing', `${events}${one}&text=nobody`, 50],
    ['page, rare text, 4 workspaces', `${events}text=Person4242%40`, 50],
  ]
}

async function measureAll(service: Service, cookie: string, tenant: CreatedTenant): Promise<Row[]> {
  const rows: Row[] = []
  for (const [name, path, aimMs] of cases(tenant)) {
    const times: number[] = []
    for (let nth = 0; nth < WARM_UPS + REQUESTS; nth += 1) {
      times.push((await ask(service, cookie, path)).ms)
    }
    rows.push(rowOf(name, times.slice(WARM_UPS), aimMs))
    process.stdout.write(`${table(rows.slice(-1))}\n`)
  }
  const one = `workspaceId=${tenant.workspaces[0]?.id}`
  const deep: number[] = []
  let cursor = ''
  for (let page = 0; page < PAGES_DEEP; page += 1) {
    const { ms, json } = await ask(service, cookie, `/dashboard/events?${one}&limit=200${cursor}`)
    deep.push(ms)
    cursor = `&cursor=${json.nextCursor}`
  }
  rows.push(rowOf(`page ${PAGES_DEEP} of 200 events`, deep.slice(-50), 50))
  return rows
}

async function ask(
  service: Service,
  cookie: string,
  path: string,
): Promise<{ ms: number; json: { nextCursor?: string } }> {
  const startedAt = performance.now()
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`, { headers: { cookie } })
  const text = await response.text()
  const ms = performance.now() - startedAt
  if (response.status !== 200) throw new Error(`${path}: ${text}`)
  return { ms, json: JSON.parse(text) }
}

function rowOf(name: string, times: readonly number[], aimMs: number): Row {
  return { name, p50Ms: percentile(times, 0.5), p95Ms: percentile(times, 0.95), aimMs }
}
