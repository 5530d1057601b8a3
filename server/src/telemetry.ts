import type { DownloadManager } from './edge/export/download-manager.ts'
import type { Writer } from './intake/writer.ts'
import type { Metrics } from './platform/metrics.ts'
import type { Database } from './platform/pg/database.ts'

type TelemetryParts = {
  metrics: Metrics
  database: Database
  accessDatabase: Database
  /** Null on a worker node. */
  writer: Writer | null
  /** Null on a worker node. */
  deps: { downloads: DownloadManager } | null
}

/** Returns what sets the gauges of this node before a scrape. */
export function createGaugeRefresh(parts: TelemetryParts): () => Promise<void> {
  return async () => setNodeGauges(parts)
}

function setNodeGauges({ metrics, database, accessDatabase, writer, deps }: TelemetryParts): void {
  for (const [pool, { totalCount, idleCount }] of [
    ['main', database.pool],
    ['access', accessDatabase.pool],
  ] as const) {
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
