import type { Config } from '../../config.ts'
import { newId } from '../id.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import { type BoundedFetch, createBoundedFetch } from '../outbound/bounded-fetch.ts'
import type { Clock } from '../time/clock.ts'
import { MetricExporter } from './metric-exporter.ts'
import { OtlpClient, type OtlpSignal, type OtlpTarget } from './otlp-client.ts'
import type { Resource } from './otlp-json.ts'
import { SpanExporter } from './span-exporter.ts'
import { Tracer } from './tracer.ts'

const RESPONSE_BYTES_MAX = 16 * 1_024
/** A node without requests stops within two seconds, and most of that is for the rest of the service. */
const STOP_MS_MAX = 1_000

type TelemetryOptions = { config: Config; clock: Clock; logger: Logger }

/** Exports traces and metrics with OTLP. Loaded only if the operator configured an endpoint. */
export class TelemetryExport implements AsyncDisposable {
  /** Null if only metrics are exported. */
  readonly tracer: Tracer | null = null
  readonly #options: TelemetryOptions
  readonly #resource: Resource
  readonly #fetch: BoundedFetch
  readonly #end = new AbortController()
  readonly #spans: SpanExporter | null = null
  #metrics: MetricExporter | null = null

  constructor(options: TelemetryOptions) {
    const { config, clock, logger } = options
    this.#options = options
    this.#resource = resourceOf(config)
    const closeSignal = this.#end.signal
    this.#fetch = createBoundedFetch({ bodyBytesMax: RESPONSE_BYTES_MAX, closeSignal })
    const traces = targetOf(config, 'traces')
    if (traces !== null) {
      const client = this.#openClient('traces', traces)
      const resource = this.#resource
      const everyMs = config.otelSpanDelayMs
      const spans = new SpanExporter({ client, resource, everyMs, logger })
      this.#spans = spans
      const { otelSampler: sampler, otelSamplerRatio: ratio } = config
      this.tracer = new Tracer({ sampler, ratio, clock, onEnd: (span) => spans.add(span) })
    }
    const targets = {
      traces: originOf(traces),
      metrics: originOf(targetOf(config, 'metrics')),
    }
    logger.info({ event: 'telemetry.started', protocol: config.otlpProtocol, ...targets })
  }

  get droppedSpanCount(): number {
    return this.#spans?.droppedCount ?? 0
  }

  startMetrics({ registry }: Metrics, refresh: () => Promise<void>): void {
    const { config, clock, logger } = this.#options
    const target = targetOf(config, 'metrics')
    if (target === null) return
    const client = this.#openClient('metrics', target)
    const resource = this.#resource
    const everyMs = config.otelMetricIntervalMs
    const parts = { client, resource, everyMs, registry, refresh, clock, logger }
    this.#metrics = new MetricExporter(parts)
  }

  #openClient(signal: OtlpSignal, target: OtlpTarget): OtlpClient {
    const { logger } = this.#options
    const fetch = this.#fetch
    const endSignal = this.#end.signal
    return new OtlpClient({ signal, ...target, fetch, logger, endSignal })
  }

  /** Sends what is left, for at most a second. */
  async [Symbol.asyncDispose](): Promise<void> {
    const timer = setTimeout(() => this.#end.abort(), STOP_MS_MAX)
    await Promise.all([
      this.#spans?.[Symbol.asyncDispose](),
      this.#metrics?.[Symbol.asyncDispose](),
    ])
    clearTimeout(timer)
    this.#end.abort()
  }
}

/** Null if the signal isn't exported. Its own headers replace the common ones. */
function targetOf(config: Config, signal: OtlpSignal): OtlpTarget | null {
  const isTraces = signal === 'traces'
  if ((isTraces ? config.otelTracesExporter : config.otelMetricsExporter) === 'none') return null
  const url = urlOf(config, signal)
  const headers = isTraces ? config.otlpTracesHeaders : config.otlpMetricsHeaders
  return url === null ? null : { url, headers: headers ?? config.otlpHeaders }
}

/** The URL of one signal is used as it is. To the common one, the path of the signal is added. */
function urlOf(config: Config, signal: OtlpSignal): string | null {
  const own = signal === 'traces' ? config.otlpTracesEndpoint : config.otlpMetricsEndpoint
  if (own !== null || config.otlpEndpoint === null) return own
  const url = new URL(config.otlpEndpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/${signal}`
  return url.href
}

/** For the log: a path can contain a token. */
function originOf(target: OtlpTarget | null): string | null {
  return target === null ? null : new URL(target.url).origin
}

/** Nodes have different instance ids, so that a receiver doesn't mix up their counters. */
function resourceOf({ otelServiceName, otelResourceAttributes }: Config): Resource {
  return {
    'service.name': 'annals',
    'service.instance.id': newId(),
    ...otelResourceAttributes,
    ...(otelServiceName !== null && { 'service.name': otelServiceName }),
  }
}
