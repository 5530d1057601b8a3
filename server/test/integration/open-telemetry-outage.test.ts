import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { parseConfig } from '../../src/config.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { startOtlpReceiver } from '../harness/telemetry/otlp-receiver.ts'
import { METRICS_ENV, scrapeMetrics, valueOf } from '../harness/telemetry/scrape.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const EVENT = { category: 'auth', action: 'user.login' }
const HEADER_SECRET = 'the-token-of-the-receiver'
const STOP_MS_MAX = 2_000
/** More spans than the queue and the batch that is being sent can hold. */
const REQUESTS = 1_200
const AT_ONCE = 50

type LogLine = { event?: string; signal?: string }

/** A logger whose lines the test reads. */
function keepLines() {
  const lines: LogLine[] = []
  const write = (line: string) => void lines.push(JSON.parse(line))
  return { lines, logger: pino({ level: 'info' }, { write }) }
}

async function sendMany(annals: TestApp, key: string, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let sent = 0; sent < count; sent += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, () =>
      annals.call('POST', '/v1/events', { key, body: EVENT }),
    )
    for (const { status } of await Promise.all(some)) statuses.push(status)
  }
  return statuses
}

test('a receiver that hangs delays neither requests nor the stop, and spans beyond the queue are dropped', async () => {
  await using telemetry = await startOtlpReceiver()
  telemetry.reply = 'hang'
  await using annals = await startTestApp({ env: { ...METRICS_ENV, ...telemetry.env } })
  const { workspaceKey } = await annals.createCompany()
  const statuses = await sendMany(annals, workspaceKey, REQUESTS)
  assert(statuses.every((status) => status === 201))
  assert(telemetry.requests.some(({ path }) => path === '/v1/traces'))
  await eventually(async () => {
    const scrape = await scrapeMetrics(annals)
    // Each request has three spans, and a batch one.
    const dropped = valueOf(scrape, 'annals_span_drop_total') ?? 0
    assert(dropped >= 2 * REQUESTS - 2_048 - 512, `${dropped} spans were dropped`)
  })
  await within(STOP_MS_MAX, annals[Symbol.asyncDispose]())
})

test('a receiver that never completes a TLS handshake does not delay the stop', async () => {
  const sockets = new Set<Socket>()
  await using silent = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).resume())
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const address = silent.address()
  assert(typeof address === 'object' && address !== null)
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `https://127.0.0.1:${address.port}`,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  }
  await using annals = await startTestApp({ env })
  await annals.call('GET', '/health')
  await eventually(() => assert.equal(sockets.size, 1))
  await within(STOP_MS_MAX, annals[Symbol.asyncDispose]())
  await eventually(() => assert([...sockets].every((socket) => socket.destroyed)))
})

test('a receiver that is down is logged once per signal, and gets the spans when it is back', async () => {
  await using telemetry = await startOtlpReceiver()
  telemetry.reply = { status: 503 }
  const { lines, logger } = keepLines()
  await using annals = await startTestApp({ env: telemetry.env, logger })
  await annals.call('GET', '/health')
  const count = (path: string) => telemetry.requests.filter((one) => one.path === path).length
  await eventually(() => {
    assert(count('/v1/traces') >= 2)
    assert(count('/v1/metrics') >= 2)
  })
  const signalsOf = (event: string) =>
    lines.filter((line) => line.event === event).map(({ signal = '' }) => signal)
  assert.deepEqual(signalsOf('telemetry.failed').toSorted(), ['metrics', 'traces'])
  telemetry.reply = { status: 200, body: '{}' }
  await telemetry.waitForSpan('GET /health')
  await eventually(() =>
    assert.deepEqual(signalsOf('telemetry.recovered').toSorted(), ['metrics', 'traces']),
  )
  assert.equal(telemetry.spans.filter(({ name }) => name === 'GET /health').length, 1)
})

test('spans that the receiver refuses or rejects are dropped and counted', async () => {
  await using telemetry = await startOtlpReceiver()
  telemetry.reply = { status: 400 }
  const env = { ...METRICS_ENV, ...telemetry.env }
  await using annals = await startTestApp({ env })
  const dropped = async () => valueOf(await scrapeMetrics(annals), 'annals_span_drop_total')
  await annals.call('GET', '/health')
  await eventually(async () => assert.equal(await dropped(), 1))
  telemetry.reply = { status: 200, body: '{"partialSuccess":{"rejectedSpans":"1"}}' }
  await annals.call('GET', '/health')
  await eventually(async () => assert.equal(await dropped(), 2))
  const { length } = telemetry.requests
  telemetry.reply = { status: 200, body: '{"partialSuccess":{"rejectedSpans":-5}}' }
  await annals.call('GET', '/health')
  await eventually(() => {
    const later = telemetry.requests.slice(length)
    assert(later.some(({ path }) => path === '/v1/traces'))
    assert(later.at(-1)?.path === '/v1/metrics')
  })
  assert.equal(await dropped(), 2)
})

test('an outage of the database fails the spans of the request and of its read', async () => {
  await using telemetry = await startOtlpReceiver()
  await using database = await cloneDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  await using annals = await startTestApp({
    databaseUrl: proxy.urlTo(database.connection),
    env: telemetry.env,
    timeoutFactor: 1,
  })
  const { workspaceKey: key } = await annals.createCompany()
  assert.equal((await annals.call('GET', '/v1/events', { key })).status, 200)
  proxy.mode = 'refuse'
  const { status, headers } = await annals.call('GET', '/v1/events', { key })
  assert.equal(status, 503)
  const traceId = headers.get('x-trace-id') ?? ''
  const request = await telemetry.waitForSpan('GET /v1/events', traceId)
  assert.equal(request.status.code, 2)
  assert.equal(request.attributes['error.type'], '503')
  const read = await telemetry.waitForSpan('query events', traceId)
  assert.equal(read.status.code, 2)
  proxy.mode = 'pass'
})

test('what has not been sent is sent during the stop', async () => {
  await using telemetry = await startOtlpReceiver()
  const env = {
    ...telemetry.env,
    OTEL_BSP_SCHEDULE_DELAY: '3600000',
    OTEL_METRIC_EXPORT_INTERVAL: '3600000',
  }
  await using annals = await startTestApp({ env })
  const { workspaceKey: key } = await annals.createCompany()
  await annals.call('POST', '/v1/events', { key, body: EVENT })
  assert.equal(telemetry.requests.length, 0)
  await within(STOP_MS_MAX, annals[Symbol.asyncDispose]())
  const names = telemetry.spans.map(({ name }) => name)
  assert.deepEqual(names.toSorted(), ['POST /v1/events', 'commit batch', 'wait for batch'])
  const [points = []] = telemetry.metricExports
  const stored = points.find(
    ({ name, labels }) => name === 'annals_event_commit_total' && labels.outcome === 'stored',
  )
  assert.equal(stored?.asDouble, 1)
})

test('the headers are sent to the receiver, and appear neither in the log nor in the configuration', async () => {
  await using telemetry = await startOtlpReceiver()
  const { lines, logger } = keepLines()
  const env = {
    ...telemetry.env,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${HEADER_SECRET}, x-tenant=1`,
    OTEL_SERVICE_NAME: 'audit',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging,service.name=ignored',
  }
  await using annals = await startTestApp({ env, logger })
  await annals.call('GET', '/health')
  await telemetry.waitForSpan('GET /health')
  telemetry.reply = { status: 500 }
  await annals.call('GET', '/health')
  await eventually(() => assert(lines.some(({ event }) => event === 'telemetry.failed')))
  for (const { headers } of telemetry.requests) {
    assert.equal(headers.authorization, `Bearer ${HEADER_SECRET}`)
    assert.equal(headers['x-tenant'], '1')
    assert.equal(headers['content-type'], 'application/json')
  }
  assert.equal(telemetry.resource['service.name'], 'audit')
  assert.equal(telemetry.resource['deployment.environment.name'], 'staging')
  assert(!JSON.stringify([lines, parseConfig(env)]).includes(HEADER_SECRET))
})

test('a signal that is switched off is not exported, and one with its own headers has only those', async () => {
  await using telemetry = await startOtlpReceiver()
  const common = { ...telemetry.env, OTEL_EXPORTER_OTLP_HEADERS: 'x-common=1' }
  const pathsAndHeaders = async (env: Record<string, string>) => {
    await using annals = await startTestApp({ env: { ...common, ...env } })
    await annals.call('GET', '/health')
    // It sends what is left of each signal.
    await annals[Symbol.asyncDispose]()
    const received = telemetry.requests.splice(0).map(({ path, headers }) => {
      const names = Object.keys(headers).filter((name) => name.startsWith('x-'))
      return [path, ...names].join(' ')
    })
    return [...new Set(received)].toSorted()
  }
  assert.deepEqual(await pathsAndHeaders({}), ['/v1/metrics x-common', '/v1/traces x-common'])
  assert.deepEqual(
    await pathsAndHeaders({
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'x-metrics=1',
    }),
    ['/v1/metrics x-metrics'],
  )
  assert.deepEqual(
    await pathsAndHeaders({
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-traces=1',
    }),
    ['/v1/traces x-traces'],
  )
})

for (const [state, env] of [
  ['without an endpoint', { OTEL_SERVICE_NAME: 'annals', OTEL_TRACES_SAMPLER: 'invalid' }],
  ['with OTEL_SDK_DISABLED', { OTEL_SDK_DISABLED: 'true' }],
  ['without exporters', { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }],
] as const) {
  test(`${state}, nothing is exported and deliveries have no traceparent`, async () => {
    await using telemetry = await startOtlpReceiver()
    await using receiver = await startReceiver()
    const hasEndpoint = state !== 'without an endpoint'
    const { lines, logger } = keepLines()
    const annalsEnv = { ...ANY_DESTINATION, ...(hasEndpoint && telemetry.env), ...env }
    await using annals = await startTestApp({ env: annalsEnv, logger })
    const tenant = await annals.createCompany()
    await makeWebhook(annals, tenant, { url: receiver.url })
    const headers = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }
    await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, headers, body: EVENT })
    const [sent] = await receiver.waitFor(1)
    assert.equal(sent?.headers['x-trace-id'], '4bf92f3577b34da6a3ce929d0e0e4736')
    assert.equal(sent?.headers.traceparent, undefined)
    await annals[Symbol.asyncDispose]()
    assert.deepEqual(telemetry.requests, [])
    assert(!lines.some(({ event }) => event?.startsWith('telemetry.')))
  })
}

test('only the dynamic import loads the exporter, so a service without an endpoint never does', () => {
  const cwd = join(import.meta.dirname, '../../src')
  const loading = /^import (?!type )[^']*'[^']*\/otlp\/(?!otlp-settings)/m
  const files = globSync('**/*.ts', { cwd, exclude: ['platform/otlp/**'] })
  const texts = files.map((name) => ({ name, text: readFileSync(join(cwd, name), 'utf8') }))
  assert.deepEqual(
    texts.filter(({ text }) => loading.test(text)).map(({ name }) => name),
    [],
  )
  const dynamic = texts.filter(({ text }) => /import\('[^']*\/otlp\//.test(text))
  assert.deepEqual(
    dynamic.map(({ name }) => name),
    ['telemetry.ts'],
  )
})
