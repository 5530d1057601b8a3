import { Pool } from 'undici'
import { asOwner } from './lib/engine.ts'
import { percentile, requestBytes, runLoad } from './lib/http-load.ts'
import { machineMs } from './lib/machine-clock.ts'
import { postPaced } from './lib/paced-load.ts'
import { cpuUsOf, postgresCpuUs } from './lib/processes.ts'
import { sampleEvent } from './lib/sample-event.ts'
import { benchSeeded, round, type SeededService } from './lib/seeded-service.ts'
import { cpuSecondsOf, postmasterPid } from './lib/service.ts'

const DAYS = 30
const SECONDS = Number(process.env.BENCH_SECONDS ?? 20)
const EVENTS_PER_SECOND = 100
const CONNECTIONS = 64
const PROOFS = 500
const PAGE = 200
const POLL_MS = 250
const VERIFY_ROUNDS = 3

type Log = { pool: Pool; headers: Record<string, string>; workspaceId: string }

/** `npm run bench -- proof`: what trees and signatures cost, and how fast proofs are. */
export async function benchProof(): Promise<void> {
  await benchSeeded('proof', { days: DAYS }, async (seeded) => {
    const log = await openLog(seeded)
    await untilSigned(log, seeded.events)
    await measureTiles(seeded)
    await measureProofs(seeded, log)
    measureVerify(seeded)
    await measureAge(seeded, log)
    await measureSigning(seeded, log)
    await log.pool.close()
  })
}

async function openLog({ service, workspaceKey }: SeededService): Promise<Log> {
  const pool = new Pool(`http://127.0.0.1:${service.port}`, { connections: 4 })
  const headers = { authorization: `Bearer ${workspaceKey}` }
  const { workspaceId } = await getJson<{ workspaceId: string }>(
    { pool, headers },
    '/v1/keys/status',
  )
  return { pool, headers, workspaceId }
}

async function getJson<T>(
  { pool, headers }: Pick<Log, 'pool' | 'headers'>,
  path: string,
): Promise<T> {
  const accept = { ...headers, accept: 'application/json' }
  const { statusCode, body } = await pool.request({ method: 'GET', path, headers: accept })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${text}`)
  return JSON.parse(text)
}

async function untilSigned(log: Log, events: number): Promise<void> {
  for (;;) {
    const size = await readSize(log)
    if (size >= events) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

async function readSize(log: Log): Promise<number> {
  const path = `/v1/workspaces/${log.workspaceId}/checkpoint`
  const { statusCode, body } = await log.pool.request({
    method: 'GET',
    path,
    headers: { ...log.headers, accept: 'application/json' },
  })
  const text = await body.text()
  if (statusCode === 409) return 0
  const { size }: { size: number } = JSON.parse(text)
  return size
}

async function measureTiles({ connection, events, ratios }: SeededService): Promise<void> {
  const bytes = await asOwner(connection, async (client) => {
    const { rows } = await client.query<{ bytes: string }>(
      "select pg_total_relation_size('tree_tile') as bytes",
    )
    return Number(rows[0]?.bytes)
  })
  ratios['bytes of tiles per event (≤ 40)'] = round(bytes / events)
}

/** CPU time of `annals verify`, with tiles and checkpoints. That of PostgreSQL is listed separately. */
function measureVerify({ env, dataDir, events, ratios }: SeededService): void {
  const postmaster = postmasterPid(dataDir)
  const rounds = Array.from({ length: VERIFY_ROUNDS }, () => {
    const before = postgresCpuUs(postmaster)
    const cpuSeconds = cpuSecondsOf(env, 'verify')
    return { cpuSeconds, postgresSeconds: (postgresCpuUs(postmaster) - before) / 1e6 }
  })
  const median = (seconds: number[]) => percentile(seconds, 0.5)
  const cpuSeconds = median(rounds.map((round) => round.cpuSeconds))
  const postgresSeconds = median(rounds.map((round) => round.postgresSeconds))
  ratios['annals verify, events per CPU second (≥ 50,000)'] = Math.round(events / cpuSeconds)
  ratios['annals verify, events per CPU second of PostgreSQL'] = Math.round(
    events / postgresSeconds,
  )
}

async function measureProofs({ rows, ratios }: SeededService, log: Log): Promise<void> {
  const ids: string[] = []
  const { data } = await getJson<{ data: { id: string }[] }>(log, `/v1/events?limit=${PAGE}`)
  ids.push(...data.map(({ id }) => id))
  const tookMs: number[] = []
  let bytesMax = 0
  for (let nth = 0; nth < PROOFS; nth += 1) {
    const path = `/v1/events/${ids[nth % ids.length]}/proof`
    const startedAtMs = performance.now()
    const headers = { ...log.headers, accept: 'text/plain' }
    const { statusCode, body } = await log.pool.request({ method: 'GET', path, headers })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(text)
    tookMs.push(performance.now() - startedAtMs)
    bytesMax = Math.max(bytesMax, Buffer.byteLength(text))
  }
  const [p50Ms = 0, p95Ms = 0, maxMs = 0] = [0.5, 0.95, 1].map((share) => percentile(tookMs, share))
  rows.push({ name: 'proof', p50Ms, p95Ms, maxMs })
  ratios['proof, p95 ms (≤ 30)'] = round(p95Ms)
  ratios['proof as text, bytes (≤ 2,000)'] = bytesMax
}

/** The time from the 201 response for an event until a checkpoint contains it. */
async function measureAge(seeded: SeededService, log: Log): Promise<void> {
  const { service, workspaceKey, rows, ratios } = seeded
  const first = await readSize(log)
  const sizes: { size: number; atMs: number }[] = []
  const done = new AbortController()
  const watching = (async () => {
    while (!done.signal.aborted) {
      sizes.push({ size: await readSize(log), atMs: machineMs() })
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  })()
  const posted = await postPaced({
    port: service.port,
    keys: [workspaceKey],
    perSecond: EVENTS_PER_SECOND,
    seconds: SECONDS,
  })
  await untilSigned(log, first + posted.length)
  sizes.push({ size: first + posted.length, atMs: machineMs() })
  done.abort()
  await watching
  // Responses arrive about in the order of the chain.
  const inOrder = posted.toSorted((a, b) => a.acknowledgedAtMs - b.acknowledgedAtMs)
  const ages = inOrder.map(({ acknowledgedAtMs }, nth) => {
    const seen = sizes.find(({ size, atMs }) => size > first + nth && atMs >= acknowledgedAtMs)
    return ((seen?.atMs ?? Infinity) - acknowledgedAtMs) / 1_000
  })
  const [p50 = 0, p99 = 0] = [0.5, 0.99].map((share) => percentile(ages, share))
  rows.push({ name: 'checkpoint age, s', p50Ms: p50 * 1_000, p95Ms: '', maxMs: p99 * 1_000 })
  ratios['checkpoint age, p99 s (≤ 6)'] = round(p99)
}

/** Compares the CPU time of the tree with that of ingest. Both include PostgreSQL. */
async function measureSigning(seeded: SeededService, log: Log): Promise<void> {
  const { service, dataDir, ratios } = seeded
  const postmaster = postmasterPid(dataDir)
  const cpuUs = () => cpuUsOf(service.pid) + postgresCpuUs(postmaster)
  const ingestUs = await ingestUsPerEvent(seeded, log, cpuUs)
  const treeUs = await treeUsPerEvent(seeded, log, cpuUs)
  ratios['CPU µs per event to ingest and sign'] = round(ingestUs)
  ratios['CPU µs per event to hash and store the tree'] = round(treeUs)
  ratios['tree to ingest without it (≤ 0.1)'] = round(treeUs / (ingestUs - treeUs))
}

/** Single events, until a checkpoint contains them all. */
async function ingestUsPerEvent(
  { service, workspaceKey: key }: SeededService,
  log: Log,
  cpuUs: () => number,
): Promise<number> {
  const size = await readSize(log)
  const before = cpuUs()
  const { byStatus } = await runLoad({
    port: service.port,
    connections: CONNECTIONS,
    durationMs: SECONDS * 1_000,
    request: (connection, nth) => {
      const body = JSON.stringify(sampleEvent(connection * 1e6 + nth))
      return requestBytes('POST', '/v1/events', { key, body })
    },
  })
  const stored = byStatus['201'] ?? 0
  await untilSigned(log, size + stored)
  return (cpuUs() - before) / stored
}

/** Removes the published tiles, so that the service reads, hashes and stores the whole chain again. */
async function treeUsPerEvent(
  { connection }: SeededService,
  log: Log,
  cpuUs: () => number,
): Promise<number> {
  const size = await readSize(log)
  const before = cpuUs()
  await asOwner(connection, async (client) => {
    await client.query('delete from tree_tile')
    await client.query('update checkpoint set tree_size = 0, size = 0')
  })
  await untilSigned(log, size)
  return (cpuUs() - before) / size
}
