import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { startTestApp } from '../harness/app/start-app.ts'
import { download, makeExport } from '../harness/export/exports.ts'
import { startOtlpReceiver } from '../harness/telemetry/otlp-receiver.ts'
import { METRICS_ENV, scrapeMetrics } from '../harness/telemetry/scrape.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { sendEvents } from '../harness/webhook/deliveries.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { ANY_DESTINATION, makeWebhook, SECRET } from '../harness/webhook/webhooks.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT_ID = '00f067aa0ba902b7'
const EVENT = { category: 'auth', action: 'user.login' }
const [INTERNAL, SERVER, CLIENT] = [1, 2, 3]

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const telemetry = stack.use(await startOtlpReceiver())
const receiver = stack.use(await startReceiver())
const annals = stack.use(
  await startTestApp({ env: { ...METRICS_ENV, ...ANY_DESTINATION, ...telemetry.env } }),
)

let traces = 0
/** A trace of its own for a test, as a caller would send it. */
function newTrace({ isSampled = true } = {}) {
  traces += 1
  const traceId = TRACE_ID.slice(0, 24) + String(traces).padStart(8, '0')
  return { traceId, headers: { traceparent: `00-${traceId}-${PARENT_ID}-0${isSampled ? 1 : 0}` } }
}

async function createTenant(options: Parameters<typeof annals.createCompany>[0] = {}) {
  const tenant = await annals.createCompany(options)
  return { ...tenant, webhookId: await makeWebhook(annals, tenant, { url: receiver.url }) }
}

test('a trace leads from the caller through the request and its commit to the webhook', async () => {
  const { workspaceKey: key } = await createTenant()
  const { traceId, headers } = newTrace()
  const response = await annals.call('POST', '/v1/events', { key, headers, body: EVENT })
  assert.equal(response.status, 201)
  assert.equal(response.headers.get('x-trace-id'), traceId)

  const request = await telemetry.waitForSpan('POST /v1/events', traceId)
  assert.equal(request.kind, SERVER)
  assert.equal(request.parentSpanId, PARENT_ID)
  assert.deepEqual(request.attributes, {
    'http.request.method': 'POST',
    'http.route': '/v1/events',
    'http.response.status_code': 201,
  })
  const wait = await telemetry.waitForSpan('wait for batch', traceId)
  assert.equal(wait.kind, INTERNAL)
  assert.equal(wait.parentSpanId, request.spanId)
  const commit = await telemetry.waitForSpan('commit batch', traceId)
  assert.equal(commit.kind, CLIENT)
  assert.equal(commit.parentSpanId, request.spanId)
  assert.deepEqual(commit.links, [{ traceId, spanId: request.spanId }])
  assert.deepEqual(wait.links, [{ traceId, spanId: commit.spanId }])
  const attempt = await telemetry.waitForSpan('webhook attempt', traceId)
  assert.equal(attempt.kind, CLIENT)
  assert.equal(attempt.parentSpanId, request.spanId)
  assert.deepEqual(attempt.attributes, {
    'http.request.method': 'POST',
    'http.response.status_code': 200,
  })

  const sent = receiver.requests.find((one) => one.headers['x-trace-id'] === traceId)
  assert.equal(sent?.headers.traceparent, `00-${traceId}-${attempt.spanId}-01`)
  const signature = createHmac('sha256', SECRET)
    .update(sent?.body ?? '')
    .digest('hex')
  assert.equal(sent?.headers['x-service-signature'], `v1=${signature}`)
  const starts = [request, wait, commit, attempt].map((span) => BigInt(span.startTimeUnixNano))
  assert.deepEqual(
    starts,
    starts.toSorted((a, b) => Number(a - b)),
  )
})

test('a failed attempt has the class of its error, and its retry belongs to the same trace', async () => {
  const failing = stack.use(await startReceiver({ status: 500 }))
  const tenant = await annals.createCompany()
  await makeWebhook(annals, tenant, { url: failing.url })
  const { traceId, headers } = newTrace()
  await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, headers, body: EVENT })
  const attempt = await telemetry.waitForSpan('webhook attempt', traceId)
  assert.equal(attempt.status.code, 2)
  assert.equal(attempt.attributes['error.type'], 'http')
  assert.equal(attempt.attributes['http.response.status_code'], 500)
  failing.respondWith({})
  const retry = await eventually(() => {
    const attempts = telemetry.spansOf(traceId).filter(({ name }) => name === 'webhook attempt')
    return attempts[1] ?? assert.fail('the retry is missing')
  })
  assert.equal(retry.attributes['http.request.resend_count'], 1)
  assert.equal(retry.parentSpanId, attempt.parentSpanId)
  const headersOfRetry = failing.requests[1]?.headers
  assert.equal(headersOfRetry?.traceparent, `00-${traceId}-${retry.spanId}-01`)
})

test('requests of one batch share a commit that is linked to all of them', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const all = Array.from({ length: 20 }, () => newTrace())
  await Promise.all(
    all.map(({ headers }) => annals.call('POST', '/v1/events', { key, headers, body: EVENT })),
  )
  for (const { traceId } of all) {
    const request = await telemetry.waitForSpan('POST /v1/events', traceId)
    const wait = await telemetry.waitForSpan('wait for batch', traceId)
    const [link] = wait.links
    const commit = await eventually(
      () => telemetry.spans.find(({ spanId }) => spanId === link?.spanId) ?? assert.fail(),
    )
    assert.equal(commit.name, 'commit batch')
    assert.equal(commit.traceId, link?.traceId)
    assert(commit.links.some(({ spanId }) => spanId === request.spanId))
    assert(Number(commit.attributes['annals.batch.events']) >= commit.links.length)
  }
})

test('a batch request has one wait, however many events it has', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const { traceId, headers } = newTrace()
  const body = { events: Array.from({ length: 50 }, () => EVENT) }
  await annals.call('POST', '/v1/events/batch', { key, headers, body })
  const commit = await telemetry.waitForSpan('commit batch', traceId)
  assert.equal(commit.attributes['annals.batch.events'], 50)
  assert.equal(commit.links.length, 1)
  await telemetry.waitForSpan('POST /v1/events/batch', traceId)
  const names = telemetry.spansOf(traceId).map(({ name }) => name)
  assert.deepEqual(names.toSorted(), ['POST /v1/events/batch', 'commit batch', 'wait for batch'])
})

test('queries show the time of their reads from the database', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const [id] = await sendEvents(annals, key, 1)
  const database = { 'db.system.name': 'postgresql' }
  for (const [path, name, route, attributes] of [
    ['/v1/events?category=billing', 'query events', '/v1/events', database],
    [`/v1/events/${id}`, 'read event', '/v1/events/:eventId', {}],
  ] as const) {
    const { traceId, headers } = newTrace()
    assert.equal((await annals.call('GET', path, { key, headers })).status, 200)
    const request = await telemetry.waitForSpan(`GET ${route}`, traceId)
    const read = await telemetry.waitForSpan(name, traceId)
    assert.equal(read.kind, CLIENT)
    assert.equal(read.parentSpanId, request.spanId)
    assert.deepEqual(read.attributes, attributes)
  }
})

test('an event that does not exist fails no span', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const { traceId, headers } = newTrace()
  const path = `/v1/events/${randomUUID()}`
  assert.equal((await annals.call('GET', path, { key, headers })).status, 404)
  const read = await telemetry.waitForSpan('read event', traceId)
  assert.deepEqual(read.status, {})
  assert.equal(read.attributes['error.type'], undefined)
})

test('an export job is a trace of its own, linked to the requests that created and ran it', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await sendEvents(annals, key, 3)
  const creation = newTrace()
  const body = { source: 'HOT', format: 'JSONL' }
  const { headers } = creation
  const { json } = await annals.call('POST', '/v1/exports', { key, headers, body })
  const run = newTrace()
  await download(annals, key, json.jobId, run.headers)
  const creating = await telemetry.waitForSpan('POST /v1/exports', creation.traceId)
  const running = await telemetry.waitForSpan('GET /v1/exports/:jobId/download', run.traceId)
  const job = await eventually(() => {
    const isOfJob = ({ name, links }: (typeof telemetry.spans)[number]) =>
      name === 'export job' && links.some(({ spanId }) => spanId === running.spanId)
    return telemetry.spans.find(isOfJob) ?? assert.fail('the job is missing')
  })
  assert.equal(job.parentSpanId, null)
  assert(![creation.traceId, run.traceId].includes(job.traceId))
  assert.deepEqual(
    job.links.map(({ traceId, spanId }) => [traceId, spanId]),
    [
      [creation.traceId, creating.spanId],
      [run.traceId, running.spanId],
    ],
  )
  assert.deepEqual(running.links, [{ traceId: job.traceId, spanId: job.spanId }])
  assert.equal(job.attributes['annals.export.format'], 'JSONL')
})

test('a trace that its caller does not sample is not exported, and the receiver learns it', async () => {
  const { workspaceKey: key } = await createTenant()
  const unsampled = newTrace({ isSampled: false })
  const { headers } = unsampled
  const response = await annals.call('POST', '/v1/events', { key, headers, body: EVENT })
  assert.equal(response.headers.get('x-trace-id'), unsampled.traceId)
  const sent = await eventually(
    () =>
      receiver.requests.find((one) => one.headers['x-trace-id'] === unsampled.traceId) ??
      assert.fail(),
  )
  assert.match(
    sent.headers.traceparent ?? '',
    new RegExp(`^00-${unsampled.traceId}-[0-9a-f]{16}-00$`),
  )
  // The spans of a later request arrive after those of earlier ones.
  const later = newTrace()
  await annals.call('POST', '/v1/events', { key, headers: later.headers, body: EVENT })
  await telemetry.waitForSpan('webhook attempt', later.traceId)
  assert.deepEqual(telemetry.spansOf(unsampled.traceId), [])
})

test('a refused request is not a failed span', async () => {
  const { traceId, headers } = newTrace()
  await annals.call('GET', '/v1/events', { key: 'unknown', headers })
  const refused = await telemetry.waitForSpan('GET /v1/events', traceId)
  assert.equal(refused.attributes['http.response.status_code'], 401)
  assert.deepEqual(refused.status, {})
})

test('an unknown path has no route in its span', async () => {
  const { traceId, headers } = newTrace()
  await annals.call('GET', '/v1/secret-path', { headers })
  const { attributes } = await telemetry.waitForSpan('GET', traceId)
  assert.equal(attributes['http.route'], undefined)
})

test('the metrics arrive with the names, labels and values of /metrics', async () => {
  const tenant = await annals.createCompany()
  await sendEvents(annals, tenant.workspaceKey, 3)
  // These change between a scrape and an export.
  const isSteady = (name: string) =>
    /^annals_(event|batch|authentication|delivery_attempt|webhook_count|company)/.test(name)
  await eventually(async () => {
    const points = (telemetry.metricExports.at(-1) ?? []).filter(({ name }) => isSteady(name))
    const { samples } = await scrapeMetrics(annals)
    const exported = points.flatMap(({ name, labels, asDouble, ...point }) => {
      if (asDouble !== undefined) return [line(name, labels, asDouble)]
      const { bucketCounts = [], explicitBounds = [], count, sum } = point
      let total = 0
      const buckets = bucketCounts.map((inBucket, index) => {
        total += Number(inBucket)
        const le = String(explicitBounds[index] ?? '+Inf')
        return line(`${name}_bucket`, { ...labels, le }, total)
      })
      const rest = [
        line(`${name}_count`, labels, Number(count)),
        line(`${name}_sum`, labels, sum ?? Number.NaN),
      ]
      return [...buckets, ...rest]
    })
    const scraped = samples
      .filter(({ name }) => isSteady(name))
      .map(({ name, labels, value }) => line(name, labels, value))
    assert(scraped.length > 50)
    assert.deepEqual(exported.toSorted(), scraped.toSorted())
  })
  const names = new Set(telemetry.metricExports.at(-1)?.map(({ name }) => name))
  const { types } = await scrapeMetrics(annals)
  assert.deepEqual(
    [...names].filter((name) => !types.has(name)),
    [],
  )
})

function line(name: string, labels: Record<string, string>, value: number): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `${name} ${JSON.stringify(sorted)} ${value}`
}

test('nothing that is exported names a tenant, a key, an address or the content of an event', async () => {
  const { webhookId, ...tenant } = await createTenant({
    company: 'Sensitive GmbH',
    workspaces: ['Hidden'],
  })
  const { workspaceKey: key, companyKey, company, workspace } = tenant
  const { traceId, headers } = newTrace()
  const { json } = await annals.call('POST', '/v1/events', {
    key,
    headers: { ...headers, 'idempotency-key': 'sensitive-idempotency' },
    body: {
      category: 'sensitive-category',
      action: 'sensitive-action',
      actor: { id: 'sensitive-actor', email: 'sensitive@customer.example' },
      metadata: { name: 'sensitive-metadata' },
    },
  })
  await telemetry.waitForSpan('webhook attempt', traceId)
  const jobId = await makeExport(annals, key)
  await download(annals, key, jobId)
  const last = newTrace()
  await annals.call('GET', '/v1/events?actorId=sensitive-query', { key, headers: last.headers })
  await annals.call('GET', `/v1/events/${json.id}`, { key })
  const paths = [`/v1/workspaces/${workspace.id}/webhooks`, `/v1/webhooks/${webhookId}/deliveries`]
  for (const path of paths)
    await annals.call('GET', path, { key: companyKey, headers: newTrace().headers })
  await telemetry.waitForSpan('GET /v1/webhooks/:webhookId/deliveries')
  await telemetry.waitForSpan('query events', last.traceId)
  const all = telemetry.requests.map(({ body }) => body).join('\n')
  const secrets = ['ensitive', 'Hidden', key, companyKey, company.id, workspace.id, webhookId]
  const others = [json.id, jobId, new URL(receiver.url).host, SECRET]
  for (const text of [...secrets, ...others]) assert(!all.includes(text), text)
})

test('the resource has the name of the service and an instance of its own', () => {
  assert.equal(telemetry.resource['service.name'], 'annals')
  assert.match(String(telemetry.resource['service.instance.id']), /^[0-9a-f-]{36}$/)
})
