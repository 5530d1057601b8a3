import type { Registry } from '@prometheus-io/client'
import type { Logger } from '../logger.ts'
import { Loop } from '../scheduling/loop.ts'
import type { Clock } from '../time/clock.ts'
import { countDataPoints, readMetricsData } from './metric-data.ts'
import type { OtlpClient } from './otlp-client.ts'
import { encodeMetrics, type Resource } from './otlp-json.ts'

type MetricExporterOptions = {
  client: Pick<OtlpClient, 'send'>
  resource: Resource
  everyMs: number
  registry: Registry
  /** Called before each export. Sets the gauges that are read from elsewhere, and never rejects. */
  refresh: () => Promise<void>
  clock: Clock
  logger: Logger
}

/**
 * Sends all metrics at each interval. A failed export isn't repeated: counters and histograms are cumulative, so
 * the next one has everything.
 */
export class MetricExporter implements AsyncDisposable {
  readonly #options: MetricExporterOptions
  readonly #startedAtMs: number
  readonly #loop: Loop

  constructor(options: MetricExporterOptions) {
    const { everyMs, logger, refresh, clock } = options
    this.#options = options
    this.#startedAtMs = clock()
    const run = async (): Promise<void> => {
      await refresh()
      await this.#send()
    }
    this.#loop = new Loop({ name: 'metric-export', everyMs, logger, run })
  }

  async #send(): Promise<void> {
    const { client, resource, registry, clock } = this.#options
    const times = { startedAtMs: this.#startedAtMs, nowMs: clock() }
    const metrics = await readMetricsData(registry, times)
    await client.send({ body: encodeMetrics(metrics, resource), count: countDataPoints(metrics) })
  }

  /**
   * Sends the last values, without a read from the database, which is closed by now. Never rejects: a metric that
   * can't be read must not fail the stop.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
    try {
      await this.#send()
    } catch (error) {
      const { logger } = this.#options
      logger.error({ event: 'telemetry.failed', signal: 'metrics', reason: String(error) })
    }
  }
}
