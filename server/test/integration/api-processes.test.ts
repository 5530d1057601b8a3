import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { after, test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { runAnnals } from '../harness/app/annals-process.ts'
import { FaultService } from '../harness/app/fault-service.ts'
import { isRunning } from '../harness/database/engine.ts'
import { type Scrape, scrapeMetrics, valueOf } from '../harness/telemetry/scrape.ts'
import { eventually } from '../harness/timing/eventually.ts'

const STOP_MS_MAX = 10_000
const PROCESSES = ['1', '2']
const ENV = { ANNALS_API_PROCESSES: '2', ANNALS_METRICS_PORT: '0', ANNALS_LOG_LEVEL: 'info' }

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await FaultService.start(ENV))
const { workspaceKey: key } = annals.takeWorkspace()

async function scrape(): Promise<Scrape> {
  const [, metricsUrl = ''] = await annals.process.printed(/"metricsUrl":"([^"]+)"/)
  return await scrapeMetrics({ app: { metricsUrl } })
}

/** How many events each process has stored, or found stored before. */
function countEvents(metrics: Scrape, outcome: string): number[] {
  return PROCESSES.map(
    (number) => valueOf(metrics, 'annals_event_commit_total', { process: number, outcome }) ?? 0,
  )
}

/** The pids of the processes that the service has started to serve the API. */
function apiPids(): number[] {
  const table = execFileSync('ps', ['-ww', '-axo', 'pid=,ppid=,command='], { encoding: 'utf8' })
  return table
    .split('\n')
    .map((line) => /^ *(\d+) +(\d+) .*main\.ts/.exec(line))
    .filter((row) => row !== null && Number(row[2]) === annals.process.pid)
    .map((row) => Number(row?.[1]))
}

test('an idempotency key that reaches all processes at once is stored once', async () => {
  for (let nth = 0; nth < 10; nth += 1) {
    const body = { category: 'c', action: 'a', idempotencyKey: randomUUID() }
    // `call` opens a connection for each request.
    const responses = await Promise.all(
      Array.from({ length: 4 }, () => annals.call('POST', '/v1/events', { key, body })),
    )
    const statuses = responses.map(({ status }) => status).toSorted((one, other) => one - other)
    assert.deepEqual(statuses, [200, 200, 200, 201])
    assert.equal(new Set(responses.map(({ json }) => json.id)).size, 1)
  }
  const replayed = countEvents(await scrape(), 'replayed')
  assert(
    replayed.every((count) => count > 0),
    `replayed per process: ${replayed.join()}`,
  )
})

test('the metrics leave out a process that does not respond, and count it', async () => {
  const [pid] = apiPids()
  assert(pid !== undefined)
  process.kill(pid, 'SIGSTOP')
  try {
    await eventually(async () => {
      const metrics = await scrape()
      assert.equal(valueOf(metrics, 'annals_process_scrape_fail_total', { process: '0' }), 1)
      assert.equal(countEvents(metrics, 'stored').filter((count) => count > 0).length, 1)
    })
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await eventually(async () => {
    assert(countEvents(await scrape(), 'stored').every((count) => count > 0))
  })
})

test('all processes store events, and killing one under load loses and duplicates nothing', async () => {
  await using load = annals.load()
  await load.waitForProgress()
  await eventually(async () => {
    const stored = countEvents(await scrape(), 'stored')
    assert(
      stored.every((count) => count > 20),
      `stored per process: ${stored.join()}`,
    )
  })
  const pids = apiPids()
  const [pid] = pids
  assert.equal(pids.length, 2)
  assert(pid !== undefined)
  process.kill(pid, 'SIGKILL')
  await annals.process.printed(
    /"level":50,.*"event":"process\.ended","process":\d,"reason":"SIGKILL"/,
  )
  await load.waitForProgress()
  await load.stop()
  await annals.assertHolds(load)
})

test('a process that was killed is replaced', async () => {
  await eventually(async () => {
    const started = (await scrape()).samples.filter(
      ({ name }) => name === 'annals_process_start_time_seconds',
    )
    assert.deepEqual(
      started.map(({ labels }) => labels['process']),
      ['0', ...PROCESSES],
    )
  })
  assert.equal(apiPids().length, 2)
})

test('when the service is killed, its processes end, and the next start works', async () => {
  const pids = apiPids()
  assert.equal(pids.length, 2)
  // It resolves only when the API processes, which have the same output, are gone too.
  await annals.kill()
  assert.deepEqual(pids.filter(isRunning), [])
  await annals.restart()
  assert.equal((await annals.call('GET', '/ready')).status, 200)
})

test('a start on a port in use fails before it creates anything', async () => {
  const { port } = new URL(annals.url)
  const dataDir = annals.folder.path('other')
  const { code, stdout, stderr } = await runAnnals(['serve'], {
    ...ENV,
    ANNALS_PORT: port,
    ANNALS_DATA_DIR: dataDir,
  })
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^annals: Port \d+ on 127\.0\.0\.1 is already in use\. [^\n]+\n$/)
  assert(!existsSync(dataDir))
})

test('SIGTERM under load stops all processes within ten seconds, with exit code 0', async () => {
  const pids = apiPids()
  const body = { category: 'last', action: 'a' }
  const sent = Array.from({ length: 50 }, () => annals.call('POST', '/v1/events', { key, body }))
  const settled = Promise.allSettled(sent)
  await sent[0]
  const startedAtMs = performance.now()
  annals.process.signal('SIGTERM')
  const { code, stdout } = await annals.process.exited
  const durationMs = performance.now() - startedAtMs
  assert.equal(code, 0, stdout)
  assert(durationMs < STOP_MS_MAX, `stopping took ${durationMs} ms: ${stdout}`)
  assert.deepEqual(pids.filter(isRunning), [])
  assert(!existsSync(annals.folder.path('engine/cluster/postmaster.pid')))
  assert.doesNotMatch(stdout, /service\.killed/)
  for (const result of await settled) {
    if (result.status === 'fulfilled') assert.equal(result.value.status, 201)
  }
})

test('if a process fails during the start, the start fails with its sentence', async () => {
  const other = randomUUID().replaceAll('-', '')
  // Only processes that the service starts have a channel to another one.
  const change = `if (process.send) process.env.ANNALS_SECRET_KEY = btoa('${other}')`
  const preload = `--import=data:text/javascript,${encodeURIComponent(change)}`
  const { dataDir } = annals.folder
  // Started with fewer connections than the service needs.
  const settings = { max_connections: '60' }
  await using _engine = await startEngine({ dataDir, exclusive: false, settings })
  // It ends when all processes are gone, because they have the same output.
  const { code, stdout, stderr } = await annals.runWith({ NODE_OPTIONS: preload }, 'serve')
  assert.equal(code, 1, stdout)
  assert.match(stderr, /^annals: [^\n]*secret key[^\n]*\n$/i)
  assert.doesNotMatch(stdout, /service\.started/)
  assert.match(stdout, /"level":40,.*"event":"connections\.few","free":\d+,"needed":80\}/)
})
