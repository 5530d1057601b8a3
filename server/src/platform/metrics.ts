import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client'

/** Values that other parts count. They are read when the metrics are scraped. */
type Sources = {
  countWaiting: () => number
  countDroppedLines: () => number
  countDroppedSpans: () => number
  connections: { size: number; evicted: number; dropped: number }
  output: { bytes: number }
  feedWaiters: { size: number }
  /** Null without a replica. */
  replicaReads: { counts: ReadonlyMap<string, number>; isDown: boolean } | null
}

const NO_SOURCES: Sources = {
  countWaiting: () => 0,
  countDroppedLines: () => 0,
  countDroppedSpans: () => 0,
  connections: { size: 0, evicted: 0, dropped: 0 },
  output: { bytes: 0 },
  feedWaiters: { size: 0 },
  replicaReads: null,
}

/** All metrics of the service. */
export function createMetrics(given: Partial<Sources> = {}) {
  const sources = { ...NO_SOURCES, ...given }
  const registry = new Registry()
  collectDefaultMetrics({
    register: registry,
    prefix: 'annals_',
    // No sliding window, because the library moves it in steps of 12 s: when the clock jumped ahead by a
    // century, that blocked the process for 14 s.
    eventLoopUtilizationMaxAgeSeconds: 0,
    eventLoopUtilizationAgeBuckets: 1,
  })
  // Quantiles since the start say little, and a histogram has the same observations.
  registry.removeSingleMetric('annals_nodejs_eventloop_utilization_summary')
  const registers = [registry]
  return {
    registry,
    ...requestMetrics(registers),
    ...batchMetrics(registers),
    ...ingestMetrics(registers),
    ...deliveryMetrics(registers),
    ...webhookMetrics(registers),
    ...signerMetrics(registers),
    ...archiveMetrics(registers),
    ...databaseMetrics(registers),
    ...processMetrics(registers, sources),
    ...connectionMetrics(registers, sources),
    ...replicaMetrics(registers, sources),
  }
}

export type Metrics = ReturnType<typeof createMetrics>

/** Observes a response. The series of an operation is looked up once, not for every request. */
export function createRequestTimer({ requestSeconds }: Metrics) {
  const series = new Map<string, ReturnType<typeof requestSeconds.labels>>()
  return (operation: string, statusCode: number, seconds: number): void => {
    const status = `${Math.floor(statusCode / 100)}xx`
    const name = operation + status
    let known = series.get(name)
    if (!known) {
      known = requestSeconds.labels({ operation, status })
      series.set(name, known)
    }
    known.observe(seconds)
  }
}

function requestMetrics(registers: Registry[]) {
  return {
    requestSeconds: new Histogram({
      name: 'annals_request_answer_seconds',
      help: 'Time from request to response, by operation and status class.',
      labelNames: ['operation', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers,
    }),
    authenticationsRefused: new Counter({
      name: 'annals_authentication_refuse_total',
      help: 'Requests refused before their body was read, by error code.',
      labelNames: ['code'],
      registers,
    }),
  }
}

function batchMetrics(registers: Registry[]) {
  return {
    batchCommitSeconds: new Histogram({
      name: 'annals_batch_commit_seconds',
      help: 'Time from the first statement of a batch to its commit.',
      buckets: [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
      registers,
    }),
    batchEvents: new Histogram({
      name: 'annals_batch_commit_events',
      help: 'Events per batch.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    }),
    batchTries: new Histogram({
      name: 'annals_batch_try_count',
      help: 'Tries needed to commit a batch. Above 1, another node moved a head first.',
      buckets: [1, 2, 3, 4, 5],
      registers,
    }),
  }
}

function ingestMetrics(registers: Registry[]) {
  return {
    eventsCommitted: new Counter({
      name: 'annals_event_commit_total',
      help: 'Events by what became of them: stored, replayed (its idempotency key was stored before), refused (by the database), crowded (other nodes were writing to its workspace) or failed (the outcome is unknown).',
      labelNames: ['outcome'],
      registers,
    }),
    eventRequestsRefused: new Counter({
      name: 'annals_event_refuse_total',
      help: 'Requests to store events that got an error, by its code. A batch counts once.',
      labelNames: ['code'],
      registers,
    }),
    eventsWaiting: emptyGauge({
      name: 'annals_event_wait_count',
      help: 'Events that wait for their batch.',
      registers,
    }),
    eventWaitSeconds: emptyGauge({
      name: 'annals_event_wait_seconds',
      help: 'How long the oldest of these events has waited. 0 if there is none.',
      registers,
    }),
    writerDown: emptyGauge({
      name: 'annals_writer_down_count',
      help: '1 while this node refuses events, because the database accepts no writes or its disk is almost full; else 0.',
      registers,
    }),
  }
}

/** Without a value until it is set, so that a node that doesn't measure it doesn't report 0. */
function emptyGauge(options: { name: string; help: string; registers: Registry[] }): Gauge {
  const gauge = new Gauge(options)
  gauge.remove()
  return gauge
}

function deliveryMetrics(registers: Registry[]) {
  return {
    deliveryAttempts: new Counter({
      name: 'annals_delivery_attempt_total',
      help: 'Attempts to send a delivery, by outcome: accepted, or the class of the error.',
      labelNames: ['result'],
      registers,
    }),
    deliverySeconds: new Histogram({
      name: 'annals_delivery_attempt_seconds',
      help: 'Duration of an attempt, including the part of the response that is read.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
      registers,
    }),
  }
}

/** Read from the database, as `outlet/telemetry` describes. */
function webhookMetrics(registers: Registry[]) {
  return {
    webhooks: new Gauge({
      name: 'annals_webhook_count',
      help: 'Webhooks by state: healthy, failing (no success since the last failure), resting (paused after many failures) or disabled.',
      labelNames: ['state'],
      registers,
    }),
    webhookEventsUnread: new Gauge({
      name: 'annals_webhook_unread_events',
      help: 'Events that webhooks have not processed yet, before their filters, by the state of the webhook.',
      labelNames: ['state'],
      registers,
    }),
    deliveriesOpen: new Gauge({
      name: 'annals_delivery_open_count',
      help: 'Deliveries that have neither succeeded nor failed, by the state of their webhook.',
      labelNames: ['state'],
      registers,
    }),
    deliveryLateSeconds: new Gauge({
      name: 'annals_delivery_late_seconds',
      help: 'How long the delivery that is most overdue has been due, by the state of its webhook. 0 if none is overdue.',
      labelNames: ['state'],
      registers,
    }),
  }
}

function archiveMetrics(registers: Registry[]) {
  return {
    archiveRuns: new Counter({
      name: 'annals_archive_run_total',
      help: 'Runs of the archiver by result: complete, partial (some workspaces failed) or failed.',
      labelNames: ['result'],
      registers,
    }),
    archiveCompletedAt: emptyGauge({
      name: 'annals_archive_complete_timestamp_seconds',
      help: 'When this node last completed a run of the archiver that left nothing behind, in Unix time.',
      registers,
    }),
    archiveEventsHeld: emptyGauge({
      name: 'annals_archive_hold_events',
      help: 'Events that were due in the last run, but that a webhook has yet to process or send.',
      registers,
    }),
  }
}

/** Read from the database, as `outlet/telemetry` describes. */
function databaseMetrics(registers: Registry[]) {
  return {
    workerLagEvents: new Gauge({
      name: 'annals_worker_lag_events',
      help: 'Events that a background worker has not processed yet: rollup, event_type, search or signer.',
      labelNames: ['worker'],
      registers,
    }),
    workerLagSeconds: new Gauge({
      name: 'annals_worker_lag_seconds',
      help: 'Age of the oldest of these events. 0 if there is none.',
      labelNames: ['worker'],
      registers,
    }),
    exportsOpen: new Gauge({
      name: 'annals_export_open_count',
      help: 'Export jobs by status: pending or running. Each counts up to 10,000.',
      labelNames: ['status'],
      registers,
    }),
    databaseBytes: emptyGauge({
      name: 'annals_database_size_bytes',
      help: 'Size of the database, with indexes.',
      registers,
    }),
    companies: new Gauge({
      name: 'annals_company_count',
      help: 'Companies by plan.',
      labelNames: ['plan'],
      registers,
    }),
    planUse: new Gauge({
      name: 'annals_plan_use_ratio',
      help: "The largest share of its plan's bytes per day that a company has stored today (UTC), by plan. Plans without a limit are left out.",
      labelNames: ['plan'],
      registers,
    }),
    gaugesFailed: new Counter({
      name: 'annals_gauge_fail_total',
      help: 'Failed reads of gauges from the database, by group: webhooks, workers, storage or plans. The gauges of the group are left out until a read succeeds.',
      labelNames: ['group'],
      registers,
    }),
  }
}

function signerMetrics(registers: Registry[]) {
  return {
    checkpointAge: new Histogram({
      name: 'annals_checkpoint_sign_seconds',
      help: 'Time from the receipt of an event to the signature of a checkpoint that contains it, for the oldest event of each checkpoint.',
      buckets: [0.5, 1, 2, 3, 4, 5, 6, 8, 10, 30, 60, 600],
      registers,
    }),
    unsignedAge: new Gauge({
      name: 'annals_event_unsigned_seconds',
      help: 'Age of the oldest event that this node stored more than 20 seconds ago and that is not signed. 0 if there is none.',
      registers,
    }),
    chainsRefused: new Gauge({
      name: 'annals_signer_refuse_count',
      help: 'Chains that the signer refuses to sign, because they are not what it signed before. Measured on the node that signs.',
      registers,
    }),
    workspacesLost: new Gauge({
      name: 'annals_workspace_lost_count',
      help: 'Signed workspaces that are missing from the database, except accepted losses. Measured on the node that signs.',
      registers,
    }),
    checkpointsSent: new Counter({
      name: 'annals_checkpoint_send_total',
      help: 'Checkpoints sent to a witness, by result: cosigned, refused or failed.',
      labelNames: ['witness', 'result'],
      registers,
    }),
    checkpointsUncosigned: new Gauge({
      name: 'annals_checkpoint_uncosigned_count',
      help: 'Chains whose newest checkpoint a witness has not cosigned yet. Measured on the node that signs.',
      labelNames: ['witness'],
      registers,
    }),
  }
}

function replicaMetrics(registers: Registry[], { replicaReads }: Sources) {
  return {
    replicaReads: new Counter({
      name: 'annals_replica_read_total',
      help: 'Reads of chains by where they ran: on the replica, or on the primary because the replica was behind, ahead, busy or paused, or the read conflicted, failed, was slow or was too large.',
      labelNames: ['outcome'],
      registers,
      collect() {
        this.reset()
        for (const [outcome, reads] of replicaReads?.counts ?? []) this.inc({ outcome }, reads)
      },
    }),
    replicaDown: new Gauge({
      name: 'annals_replica_down_count',
      help: '1 while this node reads from the primary only, because the replica is behind or does not respond; else 0. Without a replica, it has no value.',
      registers,
      collect() {
        if (replicaReads) this.set(replicaReads.isDown ? 1 : 0)
        else this.remove()
      },
    }),
  }
}

function processMetrics(registers: Registry[], { countDroppedLines, countDroppedSpans }: Sources) {
  return {
    exceptionsUncaught: new Counter({
      name: 'annals_exception_uncaught_total',
      help: 'Uncaught exceptions, by how Node reported them. Each one is a bug.',
      labelNames: ['origin'],
      registers,
    }),
    processScrapesFailed: new Counter({
      name: 'annals_process_scrape_fail_total',
      help: 'Times that an API process did not report its metrics to its supervisor in time. They are left out then.',
      registers,
    }),
    diskFreeBytes: new Gauge({
      name: 'annals_disk_free_bytes',
      help: 'Free space on the disk with the data folder, if the database is embedded.',
      labelNames: ['disk'],
      registers,
    }),
    logLinesDropped: new Counter({
      name: 'annals_log_drop_total',
      help: 'Log lines that could not be written because the disk is full, or the reader stalls or is gone.',
      registers,
      collect() {
        this.reset()
        this.inc(countDroppedLines())
      },
    }),
    spansDropped: new Counter({
      name: 'annals_span_drop_total',
      help: 'Spans that were not exported, because the queue was full, or the OpenTelemetry receiver failed or rejected them.',
      registers,
      collect() {
        this.reset()
        this.inc(countDroppedSpans())
      },
    }),
  }
}

function connectionMetrics(
  registers: Registry[],
  { connections, output, feedWaiters, countWaiting }: Sources,
) {
  return {
    httpConnectionsOpen: new Gauge({
      name: 'annals_http_connection_open_count',
      help: 'Open HTTP connections, except those to the metrics port.',
      registers,
      collect() {
        this.set(connections.size)
      },
    }),
    httpConnectionsLimited: new Counter({
      name: 'annals_http_connection_limit_total',
      help: 'Connections closed at the limit: idle ones, unfinished requests and slowly read responses (evicted), or new ones if there were none (dropped).',
      labelNames: ['outcome'],
      registers,
      collect() {
        this.reset()
        this.inc({ outcome: 'evicted' }, connections.evicted)
        this.inc({ outcome: 'dropped' }, connections.dropped)
      },
    }),
    responseBytesUnread: new Gauge({
      name: 'annals_response_unread_bytes',
      help: 'Bytes of responses to keys and sessions that clients have not read yet.',
      registers,
      collect() {
        this.set(output.bytes)
      },
    }),
    feedsWaiting: new Gauge({
      name: 'annals_feed_wait_count',
      help: 'Feed requests that wait for new events.',
      registers,
      collect() {
        this.set(feedWaiters.size)
      },
    }),
    downloadsOpen: emptyGauge({
      name: 'annals_download_open_count',
      help: 'Downloads of exports in progress, at most 200.',
      registers,
    }),
    connectionsOpen: new Gauge({
      name: 'annals_connection_open_count',
      help: 'Connections to the database, by pool (main, at most 20, access, at most 6, or replica, at most 20) and state (used or idle).',
      labelNames: ['pool', 'state'],
      registers,
    }),
    connectionsWaiting: new Gauge({
      name: 'annals_connection_wait_count',
      help: 'Queries waiting for a database connection.',
      registers,
      collect() {
        this.set(countWaiting())
      },
    }),
  }
}
