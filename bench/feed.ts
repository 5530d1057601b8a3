import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'undici'
import { multiNodeEnv } from './lib/engine.ts'
import { percentile } from './lib/http-load.ts'
import { machineMs } from './lib/machine-clock.ts'
import { postPaced } from './lib/paced-load.ts'
import { benchSeeded, round, type SeededService } from './lib/seeded-service.ts'
import { type Service, startAnnals } from './lib/service.ts'

const DAYS = 30
const SECONDS = Number(process.env.BENCH_SECONDS ?? 20)
const EVENTS_PER_SECOND = 100
const PAGE = 1_000

type Page = { data: { id: string; seq: number }[]; next: number }
type Reader = { pool: Pool; key: string; workspaceId: string }

/** `npm run bench -- feed`: reads a million events, then follows new ones on two nodes. */
export async function benchFeed(): Promise<void> {
  await benchSeeded('feed', { days: DAYS }, async (seeded) => {
    await measureThroughput(seeded)
    await measureLatency(seeded)
  })
}

async function measureThroughput(seeded: SeededService): Promise<void> {
  const { service, events, rows, ratios } = seeded
  for (const readers of [1, 2]) {
    const startedAt = performance.now()
    await Promise.all(
      Array.from({ length: readers }, async () => {
        const reader = await openReader(service, seeded)
        let after = 0
        while (after < events) after = (await readPage(reader, { after, waitSeconds: 0 })).next
        await reader.pool.close()
      }),
    )
    const perSecond = events / ((performance.now() - startedAt) / 1_000)
    const name = `${readers} ${readers === 1 ? 'reader' : 'readers'}`
    rows.push({ name, perSecond, p50Ms: '', p99Ms: '', maxMs: '' })
    if (readers === 1) ratios['events/s of a reader (≥ 20,000)'] = Math.round(perSecond)
  }
}

/** The time from the 201 response for an event to its arrival at a waiting reader. */
async function measureLatency(seeded: SeededService): Promise<void> {
  const { service, workspaceKey, connection, dataDir, rows, ratios } = seeded
  const env = {
    ...multiNodeEnv(connection),
    ANNALS_SECRET_KEY: readFileSync(join(dataDir, 'secret.key'), 'utf8').trim(),
  }
  await using other = await startAnnals(env, 'api')
  const count = SECONDS * EVENTS_PER_SECOND
  const following = [service, other].map((node) => follow(node, seeded, count))
  const posted = await postPaced({
    port: service.port,
    keys: [workspaceKey],
    perSecond: EVENTS_PER_SECOND,
    seconds: SECONDS,
  })
  const [here, there] = await Promise.all(following)
  for (const { name, arrivals, msMax } of [
    { name: 'accepting node', arrivals: here, msMax: 100 },
    { name: 'other node', arrivals: there, msMax: 500 },
  ]) {
    const late = posted.map(({ id, acknowledgedAtMs }) => {
      const arrivedAtMs = arrivals?.get(id)
      if (arrivedAtMs === undefined) throw new Error(`${name}: ${id} is missing`)
      return arrivedAtMs - acknowledgedAtMs
    })
    const [p50Ms, p99Ms, maxMs] = [0.5, 0.99, 1].map((share) => percentile(late, share))
    rows.push({
      name,
      perSecond: EVENTS_PER_SECOND,
      p50Ms: p50Ms ?? 0,
      p99Ms: p99Ms ?? 0,
      maxMs: maxMs ?? 0,
    })
    ratios[`${name}, commit to arrival, p99 ms (≤ ${msMax})`] = round(p99Ms ?? Number.NaN)
  }
}

/** Waits for this many new events, and returns when each arrived. */
async function follow(
  node: Service,
  seeded: SeededService,
  count: number,
): Promise<Map<string, number>> {
  const reader = await openReader(node, seeded)
  const arrivals = new Map<string, number>()
  let after = seeded.events
  while (arrivals.size < count) {
    const { data, next } = await readPage(reader, { after, waitSeconds: 30 })
    const atMs = machineMs()
    for (const { id } of data) arrivals.set(id, atMs)
    after = next
  }
  await reader.pool.close()
  return arrivals
}

async function openReader(node: Service, { workspaceKey: key }: SeededService): Promise<Reader> {
  const pool = new Pool(`http://127.0.0.1:${node.port}`, { connections: 1 })
  const headers = { authorization: `Bearer ${key}` }
  const { body } = await pool.request({ method: 'GET', path: '/v1/keys/status', headers })
  const { workspaceId }: { workspaceId: string } = JSON.parse(await body.text())
  return { pool, key, workspaceId }
}

/** Checks that no event is skipped or repeated. */
async function readPage(
  { pool, key, workspaceId }: Reader,
  { after, waitSeconds }: { after: number; waitSeconds: number },
): Promise<Page> {
  const search = `after=${after}&limit=${PAGE}&waitSeconds=${waitSeconds}`
  const { statusCode, body } = await pool.request({
    method: 'GET',
    path: `/v1/workspaces/${workspaceId}/feed?${search}`,
    headers: { authorization: `Bearer ${key}` },
  })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(text)
  const page: Page = JSON.parse(text)
  page.data.forEach(({ seq }, nth) => {
    if (seq !== after + nth + 1) throw new Error(`event ${seq} follows ${after + nth}`)
  })
  return page
}
