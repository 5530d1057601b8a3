import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { eventually } from '../timing/eventually.ts'

type Value = { stringValue?: string; intValue?: string }
type Attributes = { key: string; value: Value }[]
type Link = { traceId: string; spanId: string }
type WireSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attributes
  links?: Link[]
  status: { code?: number }
}
type Point = {
  attributes: Attributes
  asDouble?: number
  count?: string
  sum?: number
  bucketCounts?: string[]
  explicitBounds?: number[]
}
type WireMetric = {
  name: string
  sum?: { dataPoints: Point[]; aggregationTemporality: number; isMonotonic: boolean }
  gauge?: { dataPoints: Point[] }
  histogram?: { dataPoints: Point[]; aggregationTemporality: number }
}

export type ReceivedSpan = Omit<WireSpan, 'attributes' | 'parentSpanId' | 'links'> & {
  parentSpanId: string | null
  attributes: Record<string, string | number>
  links: Link[]
}
export type ReceivedPoint = Omit<Point, 'attributes'> & {
  name: string
  labels: Record<string, string>
}

type Reply = { status: number; headers?: Record<string, string>; body?: string } | 'hang'

/** An OTLP receiver on loopback that decodes and checks what arrives. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver = new OtlpReceiver()
  await receiver.listen()
  return receiver
}

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = []
  /** The points of each export of metrics. */
  readonly metricExports: ReceivedPoint[][] = []
  /** Everything that arrived, as text, and the headers of each request. */
  readonly requests: { path: string; headers: IncomingHttpHeaders; body: string }[] = []
  resource: Record<string, string | number> = {}
  /** How the next requests are answered. Only accepted spans are kept. */
  reply: Reply = { status: 200, body: '{}' }
  readonly #server: Server = createServer((request, response) => {
    void text(request).then((body) => {
      this.requests.push({ path: request.url ?? '', headers: request.headers, body })
      if (this.reply === 'hang') return
      const { status, headers, body: answer = '' } = this.reply
      if (status === 200) this.#decode(request.url ?? '', body)
      response.writeHead(status, headers).end(answer)
    })
  })

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get url(): string {
    const address = this.#server.address()
    assert(typeof address === 'object' && address !== null)
    return `http://127.0.0.1:${address.port}`
  }

  /** For `startTestApp`: exports soon. */
  get env(): Record<string, string> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    }
  }

  spansOf(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId)
  }

  /** Waits for a span with this name in a trace, or in any. */
  async waitForSpan(name: string, traceId?: string): Promise<ReceivedSpan> {
    return await eventually(() => {
      const among = traceId === undefined ? this.spans : this.spansOf(traceId)
      const found = among.find((span) => span.name === name)
      assert(found, `${name} is missing among: ${among.map((span) => span.name).join(', ')}`)
      return found
    })
  }

  #decode(path: string, body: string): void {
    const json = JSON.parse(body)
    if (path === '/v1/traces') {
      for (const { resource, scopeSpans } of json.resourceSpans) {
        this.resource = readAttributes(resource.attributes)
        for (const { spans } of scopeSpans) this.spans.push(...spans.map(readSpan))
      }
      return
    }
    assert.equal(path, '/v1/metrics')
    for (const { scopeMetrics } of json.resourceMetrics) {
      for (const { metrics } of scopeMetrics) this.metricExports.push(metrics.flatMap(readMetric))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}

function readSpan({ parentSpanId = '', attributes, links = [], ...span }: WireSpan): ReceivedSpan {
  for (const { traceId, spanId } of [span, ...links]) {
    assert.match(traceId, /^[0-9a-f]{32}$/)
    assert.match(spanId, /^[0-9a-f]{16}$/)
  }
  const [start, end] = [BigInt(span.startTimeUnixNano), BigInt(span.endTimeUnixNano)]
  assert(start > 0n && end >= start, `${span.name} ends before it starts`)
  return {
    ...span,
    parentSpanId: parentSpanId || null,
    attributes: readAttributes(attributes),
    links,
  }
}

function readMetric({ name, sum, gauge, histogram }: WireMetric): ReceivedPoint[] {
  const cumulative = sum ?? histogram
  if (cumulative) assert.equal(cumulative.aggregationTemporality, 2)
  if (sum) assert(sum.isMonotonic)
  const { dataPoints } = sum ?? gauge ?? histogram ?? assert.fail(`${name} has no data`)
  return dataPoints.map(({ attributes, ...point }) => {
    const labels = Object.entries(readAttributes(attributes))
    return { ...point, name, labels: Object.fromEntries(labels.map(([k, v]) => [k, String(v)])) }
  })
}

function readAttributes(attributes: Attributes): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue } }) => [
      key,
      stringValue ?? Number(intValue),
    ]),
  )
}
