import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { startEngine } from '../server/src/platform/engine/embedded-postgres.ts'
import { percentile, requestBytes, runLoad } from './lib/http-load.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { seedEvents } from './lib/seed-events.ts'
import { annals, startAnnals } from './lib/service.ts'

const LARGE = Number(process.env.BENCH_EVENTS ?? 1_000_000)
const SMALL = 10_000
const SPREAD_DAYS = 30
const REQUESTS = 300
const PAGES_DEEP = 1_000
const DAY_MS = 86_400_000

type Tenant = { key: string; companyKey: string; project: string | null }
type Row = { filter: string; size: number; p50Ms: number; p99Ms: number; rows: number }

/** `npm run bench -- query`: measures pages with each filter, at 10,000 and at 1,000,000 events. */
export async function benchQuery(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  const env = { ANNALS_DATA_DIR: dataDir, ANNALS_RATE_LIMITS: 'off' }
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    await using service = await startAnnals(env)
    const rows: Row[] = []
    const gets: { size: number; key: string; p50Ms: number; p99Ms: number }[] = []
    const deep: { size: number; page: number; p50Ms: number; p99Ms: number }[] = []
    for (const size of [SMALL, LARGE]) {
      const tenant = createTenant(env)
      const { key, project } = tenant
      const more = (nth: number) => (nth % 4 === 0 ? { projectId: project } : {})
      await seedEvents(service, { key, count: size, days: SPREAD_DAYS, more })
      await analyze(engine.connection)
      for (const [filter, query] of filters(tenant)) {
        rows.push({ filter, size, ...(await measurePages(service.port, tenant.key, query)) })
      }
      for (const [name, used] of [
        ['workspace', key],
        ['company', tenant.companyKey],
      ] as const) {
        gets.push({
          size,
          key: name,
          ...(await measureGets(service.port, used, await sampleIds(service.port, key))),
        })
      }
      if (size === LARGE) deep.push(...(await measureDepth(service.port, tenant.key)))
    }
    report({ rows, gets, deep }, annals(env, 'verify').trim())
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function createTenant(env: Record<string, string>): Tenant {
  const created = JSON.parse(annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE'))
  const { workspaceKey: key, companyKey, project } = created
  return { key, companyKey, project: project.id }
}

/** Does what autovacuum would do a minute later. */
async function analyze(connection: object): Promise<void> {
  const client = new Client(connection)
  await client.connect()
  await client.query('vacuum (analyze) event')
  await client.query('checkpoint')
  await client.end()
}

function filters({ project }: Tenant): [string, string][] {
  const single: [string, string][] = [
    ['none', ''],
    ['category', 'category=billing'],
    ['action', 'action=auth.deleted'],
    ['projectId', `projectId=${project}`],
    ['actorId', 'actorId=usr_42'],
    ['actorEmail', 'actorEmail=person42%40acme.example'],
    ['resourceType', 'resourceType=files'],
    ['resourceId', 'resourceId=res_4242'],
    ['matches nothing', 'actorId=nobody'],
    ['category and action, contradictory', 'category=billing&action=auth.deleted'],
  ]
  const from = new Date(Date.now() - 20 * DAY_MS).toISOString()
  const to = new Date(Date.now() - 19 * DAY_MS).toISOString()
  return single.flatMap(([name, query]) => [
    [name, query],
    [`${name}, one day`, `${query}&from=${from}&to=${to}`],
  ])
}

async function measurePages(port: number, key: string, query: string) {
  let rows = 0
  const request = requestBytes('GET', `/v1/events?limit=50&${query}`.replace(/[?&]&?$/, ''), {
    key,
  })
  const countRows = (body: string) => {
    rows = body.split('"seq":').length - 1
  }
  const times = await measure(port, () => request, countRows)
  return { ...times, rows }
}

const IDS = 200

/** Ids from all of the chain. */
async function sampleIds(port: number, key: string): Promise<string[]> {
  const list = async (search: string): Promise<{ id: string; seq: number }[]> => {
    const url = `http://127.0.0.1:${port}/v1/events?${search}`
    const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
    const page: { data: { id: string; seq: number }[] } = JSON.parse(await response.text())
    return page.data
  }
  const head = Math.max(...(await list('limit=200')).map(({ seq }) => seq))
  const ids: string[] = []
  for (let nth = 1; nth <= IDS; nth += 1) {
    const seq = Math.ceil((nth * head) / IDS)
    ids.push(...(await list(`seqFrom=${seq}&seqTo=${seq}`)).map(({ id }) => id))
  }
  return ids
}

/** Gets events by their ids. */
async function measureGets(port: number, key: string, ids: readonly string[]) {
  return await measure(port, (nth) => {
    const id = ids[(nth * 7) % ids.length]
    return requestBytes('GET', `/v1/events/${id}`, { key })
  })
}

/** Sends one request at a time, after a warm-up. */
async function measure(
  port: number,
  requestOf: (nth: number) => Buffer,
  onBody: (body: string) => void = () => {},
): Promise<Times> {
  const load = (requests: number) => {
    let sent = 0
    return runLoad({
      port,
      connections: 1,
      durationMs: 60_000,
      request: () => {
        sent += 1
        return requestOf(sent - 1)
      },
      isDone: () => sent >= requests,
      onResponse: (status, body) => {
        if (status !== 200) throw new Error(body)
        onBody(body)
      },
    })
  }
  await load(20)
  const { p50Ms, p99Ms } = await load(REQUESTS)
  return { p50Ms, p99Ms }
}

/** Reads page after page, and compares the first hundred with the last hundred. */
async function measureDepth(port: number, key: string) {
  const times: number[] = []
  let cursor: string | null = null
  for (let page = 0; page < PAGES_DEEP; page += 1) {
    const path: string = `/v1/events?limit=50${cursor === null ? '' : `&cursor=${cursor}`}`
    const startedAt = performance.now()
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const body: { nextCursor: string | null } = JSON.parse(await response.text())
    times.push(performance.now() - startedAt)
    cursor = body.nextCursor
  }
  return [
    { page: 1, sample: times.slice(5, 105) },
    { page: PAGES_DEEP, sample: times.slice(-100) },
  ].map(({ page, sample }) => ({
    size: LARGE,
    page,
    p50Ms: percentile(sample, 0.5),
    p99Ms: percentile(sample, 0.99),
  }))
}

type Times = { p50Ms: number; p99Ms: number }
type Results = {
  rows: readonly Row[]
  gets: readonly (Times & { size: number; key: string })[]
  deep: readonly Times[]
}

function report({ rows, gets, deep }: Results, verified: string): void {
  const small = rows.filter(({ size }) => size === SMALL)
  const large = rows.filter(({ size }) => size === LARGE)
  const growth = large.map((row, index) => row.p50Ms / (small[index]?.p50Ms ?? Number.NaN))
  const ratios = {
    'worst p99 at the large size, ms (≤ 10)': Math.max(...large.map(({ p99Ms }) => p99Ms)),
    'get an event at the large size, worst p99 ms (≤ 5)': Math.max(
      ...gets.filter(({ size }) => size === LARGE).map(({ p99Ms }) => p99Ms),
    ),
    'large to small, worst p50 ratio (≤ 2)': Math.max(...growth),
    'page 1,000 to page 1, p50 (≤ 1.5)': (deep[1]?.p50Ms ?? 0) / (deep[0]?.p50Ms ?? 1),
  }
  process.stdout.write(`\n${table(rows)}\n\n${table(gets)}\n\n`)
  for (const [name, value] of Object.entries(ratios)) {
    process.stdout.write(`${name}: ${value.toFixed(2)}\n`)
  }
  process.stdout.write(`${verified}\n`)
  const path = saveResult('query', { ...benchEnvironment({}), rows, gets, deep, ratios, verified })
  process.stdout.write(`saved ${path}\n`)
}
