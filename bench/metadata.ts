import { hash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { advanceSearchBlocks } from '../server/src/ledger/search/search-blocks.ts'
import { startEngine } from '../server/src/platform/engine/embedded-postgres.ts'
import { assertId } from '../server/src/platform/id.ts'
import { createLogger } from '../server/src/platform/logger.ts'
import { Database } from '../server/src/platform/pg/database.ts'
import { asOwner, type EngineConnection, multiNodeEnv } from './lib/engine.ts'
import { percentile } from './lib/http-load.ts'
import { postgresCpuUs } from './lib/processes.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { seedEvents } from './lib/seed-events.ts'
import { annals, postmasterPid, type Service, startAnnals } from './lib/service.ts'

const EVENTS = Number(process.env.BENCH_EVENTS ?? 1_000_000)
const SPREAD_DAYS = 30
const WARM_UPS = 5
const REQUESTS = 50
const DAY_MS = 86_400_000
const ROLLUP_SECONDS_MAX = 20 * 60
/** The hardest value to find: every tenth block has one, and no posting. */
const EVENTS_PER_SESSION = 100

type CreatedTenant = {
  workspace: { id: string }
  workspaceKey: string
  user: { email: string }
}
type Row = { name: string; p50Ms: number; p95Ms: number; aimMs: number; found: number }

/** `npm run bench -- metadata`: what the search blocks cost, and how fast searches by metadata are. */
export async function benchMetadata(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const { connection } = engine
    const env = multiNodeEnv(connection)
    const tenant: CreatedTenant = JSON.parse(
      annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE'),
    )
    {
      // An API node builds no blocks.
      await using api = await startAnnals(env, 'api')
      await seedEvents(api, { key: tenant.workspaceKey, count: EVENTS, days: SPREAD_DAYS, more })
    }
    await asOwner(connection, (client) => client.query('vacuum (analyze)'))
    const cost = await measureCost({ connection, tenant, postmaster: postmasterPid(dataDir) })
    await using service = await startAnnals(env)
    await waitForRollup(connection, tenant)
    await asOwner(connection, (client) => client.query('vacuum (analyze)'))
    const rows = await measureAll(service, {
      cookie: await signIn(connection, tenant.user.email),
      tenant,
    })
    const verified = annals(env, 'verify').trim()
    process.stdout.write(`\n${table([cost])}\n\n${table(rows)}\n\n${verified}\n`)
    const result = { ...benchEnvironment({}), events: EVENTS, cost, rows, verified }
    process.stdout.write(`saved ${saveResult('metadata', result)}\n`)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function more(nth: number): Record<string, unknown> {
  return {
    metadata: {
      ip: `198.51.100.${nth % 250}`,
      userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36',
      requestId: requestId(nth),
      session: `s_${(nth * 7_919) % (EVENTS / EVENTS_PER_SESSION)}`,
      durationMs: nth % 900,
      changed: ['name', 'amount', 'owner'],
      success: nth % 10 !== 0,
    },
  }
}

const requestId = (nth: number): string => hash('sha256', `request ${nth}`).slice(0, 32)

/** Builds the blocks of all events in this process, with no other load. */
async function measureCost({
  connection,
  tenant,
  postmaster,
}: {
  connection: EngineConnection
  tenant: CreatedTenant
  postmaster: number
}): Promise<Record<string, number>> {
  await using database = new Database({
    connection,
    role: 'annals_serving',
    connectionsMax: 2,
    logger: createLogger('silent'),
  })
  const workspaceId = assertId<'workspace'>(tenant.workspace.id)
  const before = { node: process.cpuUsage(), postgres: postgresCpuUs(postmaster) }
  while ((await advanceSearchBlocks(database.db, workspaceId)) !== 'done');
  const { user, system } = process.cpuUsage(before.node)
  const postgres = postgresCpuUs(postmaster) - before.postgres
  const bytes = await asOwner(connection, async (client) => {
    const { rows } = await client.query<{ bytes: string }>(
      `select pg_total_relation_size('search_block') as bytes`,
    )
    return Number(rows[0]?.bytes)
  })
  return {
    nodeUsPerEvent: (user + system) / EVENTS,
    postgresUsPerEvent: postgres / EVENTS,
    cpuUsPerEvent: (user + system + postgres) / EVENTS,
    cpuUsAim: 15,
    bytesPerEvent: bytes / EVENTS,
    bytesAim: 40,
  }
}

/** The API node counted nothing. A text search reads the events that are not counted yet. */
async function waitForRollup(connection: EngineConnection, tenant: CreatedTenant): Promise<void> {
  const isDone = await asOwner(connection, async (client) => {
    for (let tries = 0; tries < ROLLUP_SECONDS_MAX; tries += 1) {
      const { rows } = await client.query<{ left: string }>(
        `select h.seq - coalesce(r.seen_seq, 0) as left
           from chain_head h left join rollup_head r on r.workspace_id = h.workspace_id
          where h.workspace_id = $1`,
        [tenant.workspace.id],
      )
      if (Number(rows[0]?.left) === 0) return true
      await sleep(1_000)
    }
    return false
  })
  if (!isDone) throw new Error(`the rollup took more than ${ROLLUP_SECONDS_MAX} s`)
}

async function measureAll(
  service: Service,
  { cookie, tenant }: { cookie: string; tenant: CreatedTenant },
): Promise<Row[]> {
  const nowMs = Date.now()
  const month = `from=${new Date(nowMs - 30 * DAY_MS).toISOString()}&to=${new Date(nowMs).toISOString()}`
  const rare = (nth: number) =>
    `metadata.requestId=${requestId(Math.floor((nth * EVENTS) / (WARM_UPS + REQUESTS)))}`
  const session = (nth: number) => `metadata.session=s_${nth * 3}`
  const frequent = () => 'metadata.success=true'
  const address = (nth: number) => `metadata.ip=198.51.100.${nth % 250}`
  const nothing = (nth: number) => `metadata.requestId=nothing${nth}`
  const text = (nth: number) => `text=${requestId(nth * 1_000)}`
  const addressText = (nth: number) => `text=198.51.100.${nth % 250}`
  const histogram = (filter: (nth: number) => string) => (nth: number) =>
    `/dashboard/events/metrics/histogram?${month}&by=category&${filter(nth)}`
  /** The most recent events, at a different moment each time. */
  const grouped = (by: string, events: number) => (nth: number) => {
    const toMs = nowMs - nth * 60_000
    const fromMs = toMs - (events / EVENTS) * SPREAD_DAYS * DAY_MS
    const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString())
    return `/dashboard/events/metrics/histogram?from=${from}&to=${to}&by=${by}`
  }
  const api = (filter: (nth: number) => string) => (nth: number) => `/v1/events?${filter(nth)}`
  const page = (filter: (nth: number) => string) => (nth: number) =>
    `/dashboard/events?${filter(nth)}`
  const cases: [name: string, pathOf: (nth: number) => string, aimMs: number][] = [
    ['API page, unique value', api(rare), 150],
    ['API page, value of 100 events', api(session), 150],
    ['API page, no such value', api(nothing), 150],
    ['API page, one event in 250', api(address), 50],
    ['API page, nine events in ten', api(frequent), 50],
    ['explorer page, unique value', page(rare), 150],
    ['explorer page, text of a unique value', page(text), 150],
    ['explorer page, text of one event in 250', page(addressText), 150],
    ['histogram, unique value', histogram(rare), 800],
    ['histogram, value of 100 events', histogram(session), 800],
    ['histogram, one event in 250', histogram(address), 800],
    ['histogram, nine events in ten', histogram(frequent), 800],
    ['histogram, text of a unique value', histogram(text), 800],
    ['histogram, text of one event in 250', histogram(addressText), 800],
    ['histogram of 99,000 events by actor', grouped('actorEmail', 99_000), 800],
    ['histogram of 99,000 events by resource ID', grouped('resourceId', 99_000), 800],
    ['histogram of 19,000 events by metadata.ip', grouped('metadata.ip', 19_000), 800],
  ]
  const rows: Row[] = []
  for (const [name, pathOf, aimMs] of cases) {
    const times: number[] = []
    let found = 0
    for (let nth = 0; nth < WARM_UPS + REQUESTS; nth += 1) {
      const path = pathOf(nth)
      const headers = path.startsWith('/v1')
        ? { authorization: `Bearer ${tenant.workspaceKey}` }
        : { cookie }
      const startedAt = performance.now()
      const response = await fetch(`http://127.0.0.1:${service.port}${path}`, { headers })
      const body = await response.text()
      if (nth >= WARM_UPS) times.push(performance.now() - startedAt)
      if (response.status !== 200) throw new Error(`${path}: ${body}`)
      const json: { data?: unknown[]; total?: number } = JSON.parse(body)
      found = json.data?.length ?? json.total ?? 0
    }
    const p50Ms = percentile(times, 0.5)
    rows.push({ name, p50Ms, p95Ms: percentile(times, 0.95), aimMs, found })
    process.stdout.write(`${table(rows.slice(-1))}\n`)
  }
  return rows
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
