import type { Config } from './config.ts'
import type { DownloadManager } from './edge/export/download-manager.ts'
import type { Writer } from './intake/writer.ts'
import { GaugeReader } from './outlet/telemetry/gauge-reader.ts'
import type { Logger } from './platform/logger.ts'
import type { Metrics } from './platform/metrics.ts'
import type { TelemetryExport } from './platform/otlp/telemetry-export.ts'
import type { Database } from './platform/pg/database.ts'
import type { Clock, MonotonicClock } from './platform/time/clock.ts'

type TelemetryParts = {
  metrics: Metrics
  database: Database
  accessDatabase: Database
  /** Null without a replica. */
  replica: Database | null
  /** Null on a worker node. */
  writer: Writer | null
  /** Null on a worker node. */
  deps: { downloads: DownloadManager } | null
  hasArchive: boolean
  monotonic: MonotonicClock
  logger: Logger
}

/**
 * Loads the export to OpenTelemetry if an endpoint is configured. Otherwise, none of its code is loaded. Call it
 * before other parts start, so that it also exports what they do while they stop.
 */
export async function openTelemetryExport(
  stack: AsyncDisposableStack,
  options: { config: Config; clock: Clock; logger: Logger },
): Promise<TelemetryExport | null> {
  const { otlpEndpoint, otlpTracesEndpoint, otlpMetricsEndpoint } = options.config
  if ((otlpEndpoint ?? otlpTracesEndpoint ?? otlpMetricsEndpoint) === null) return null
  const { TelemetryExport } = await import('./platform/otlp/telemetry-export.ts')
  return stack.use(new TelemetryExport(options))
}

/** Returns what sets the gauges before a scrape: those of this node, and those that are in the database. */
export function createGaugeRefresh({ hasArchive, ...parts }: TelemetryParts): () => Promise<void> {
  const { db } = parts.database
  const reader = new GaugeReader({ ...parts, db, isSigning: hasArchive })
  return async () => {
    await reader.refresh()
    setNodeGauges(parts)
  }
}

function setNodeGauges({
  metrics,
  database,
  accessDatabase,
  replica,
  writer,
  deps,
}: Omit<TelemetryParts, 'hasArchive'>): void {
  for (const [pool, connections] of [
    ['main', database.pool],
    ['access', accessDatabase.pool],
    ['replica', replica?.pool],
  ] as const) {
    if (!connections) continue
    const { totalCount, idleCount } = connections
    metrics.connectionsOpen.set({ pool, state: 'used' }, totalCount - idleCount)
    metrics.connectionsOpen.set({ pool, state: 'idle' }, idleCount)
  }
  if (deps) metrics.downloadsOpen.set(deps.downloads.openCount)
  if (!writer) return
  const { events, waitedMs } = writer.backlog
  metrics.eventsWaiting.set(events)
  metrics.eventWaitSeconds.set(waitedMs / 1_000)
  metrics.writerDown.set(writer.canWrite ? 0 : 1)
}
