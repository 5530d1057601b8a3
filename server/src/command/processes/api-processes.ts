import cluster, { type Worker } from 'node:cluster'
import { OperatorError } from '../../errors.ts'
import type { Logger } from '../../platform/logger.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import type { ProcessStart, ProcessReport, ProcessRequest } from './messages.ts'

const RESTART_MS = 1_000
/** An API process gives its gauges from the database a second. */
const METRICS_MS_MAX = 2_000
/** Then the stop goes on without waiting for the processes. Requests get 5 s of it. */
const STOP_WAIT_MS_MAX = 6_000
/** A process ends itself after 9 s, unless its event loop is blocked. */
const KILL_MS = 9_200

type ApiProcessesOptions = Pick<ProcessStart, 'port' | 'pagesFolder'> & {
  count: number
  logger: Logger
}

/**
 * The processes that serve the API on one port.
 *
 *   starting ──started──▶ serving
 *   starting | serving ──exit──▶ ended ──1 s──▶ starting
 *   starting | serving ──stop──▶ stopping ──exit──▶ gone
 *
 * If a process ends during its first start, `start` rejects. This process listens, and hands each connection to the
 * next process that is ready for one: so the connections are spread evenly, a blocked process delays at most one, and
 * the port is free as soon as this process is gone.
 */
export class ApiProcesses {
  readonly #options: ApiProcessesOptions
  readonly #running = new Map<number, Worker>()
  readonly #serving = new Set<Worker>()
  readonly #firstStarts = new Map<number, PromiseWithResolvers<string>>()
  readonly #restarts = new Set<NodeJS.Timeout>()
  readonly #metrics = new Map<number, (text: string) => void>()
  readonly #ended = Promise.withResolvers<void>()
  /** With port 0, what all processes have to ask for in order to get the same one. */
  #port: number
  #chosenPort: number | null = null
  #isStopping = false
  #hasFailed = false
  #requests = 0

  constructor(options: ApiProcessesOptions) {
    this.#options = options
    this.#port = options.port
  }

  /** Resolves with the URL when all processes listen. Rejects if one can't start. */
  async start(): Promise<string> {
    cluster.schedulingPolicy = cluster.SCHED_RR
    const numbers = Array.from({ length: this.#options.count }, (_, index) => index + 1)
    for (const number of numbers) this.#firstStarts.set(number, Promise.withResolvers())
    const starts = [...this.#firstStarts.values()].map(({ promise }) => promise)
    for (const number of numbers) this.#fork(number)
    const [url = ''] = await Promise.all(starts)
    return url
  }

  /** True if a process may have left a caller without the outcome of an event. */
  get hasFailed(): boolean {
    return this.#hasFailed || [...this.#running.values()].some((each) => this.#serving.has(each))
  }

  /** The metrics by number of the process, and how many processes did not report them. */
  async readMetrics(): Promise<{ texts: Map<number, string>; missing: number }> {
    const texts = new Map<number, string>()
    const read = async ([number, worker]: [number, Worker]): Promise<void> => {
      if (!this.#serving.has(worker)) return
      texts.set(number, await this.#readMetricsOf(worker))
    }
    await Promise.allSettled([...this.#running].map(read))
    // Answers arrive in any order.
    const sorted = new Map([...texts].toSorted(([one], [other]) => one - other))
    return { texts: sorted, missing: this.#options.count - sorted.size }
  }

  /** Stops all processes, and waits a while for them. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#restarts) clearTimeout(timer)
    // One that doesn't serve yet has nothing to finish, and may be busy loading for a while.
    for (const worker of this.#running.values()) {
      worker.process.kill(this.#serving.has(worker) ? 'SIGTERM' : 'SIGKILL')
    }
    if (this.#running.size === 0) this.#ended.resolve()
    setTimeout(() => {
      for (const worker of this.#running.values()) worker.process.kill('SIGKILL')
    }, KILL_MS).unref()
    const late = () => new Error('API processes are still stopping')
    await withDeadline(this.#ended.promise, { timeoutMs: STOP_WAIT_MS_MAX, late }).catch(() => {})
  }

  /** Stops all processes, and waits until they are gone. */
  async end(): Promise<void> {
    await this.stop()
    await this.#ended.promise
  }

  #fork(number: number): void {
    // When all are gone, the port is closed, and the next one opens it again.
    if (this.#running.size === 0 && this.#chosenPort !== null) this.#port = this.#chosenPort
    const worker = cluster.fork()
    this.#running.set(number, worker)
    worker.on('message', (report: ProcessReport) => this.#onReport(number, report))
    worker.on('listening', ({ port }) => {
      this.#serving.add(worker)
      this.#chosenPort = port
    })
    worker.on('error', (error) => {
      this.#options.logger.error({ event: 'process.failed', process: number, err: error })
      // It could not even be created, so it doesn't exit either.
      if (worker.process.pid === undefined) this.#onEnd(number, worker, 'could not be created')
    })
    worker.on('exit', (code: number | null, signal: string | null) => {
      if (this.#isStopping && this.#serving.has(worker) && code !== 0) this.#hasFailed = true
      const end = () => this.#onEnd(number, worker, signal ?? `exit code ${code}`)
      // Its last report can arrive after its exit.
      if (worker.isConnected()) worker.once('disconnect', end)
      else end()
    })
    const { pagesFolder } = this.#options
    send(worker, { kind: 'start', number, port: this.#port, pagesFolder })
  }

  #onReport(number: number, report: ProcessReport): void {
    const first = this.#firstStarts.get(number)
    switch (report.kind) {
      case 'started':
        this.#firstStarts.delete(number)
        return first?.resolve(report.url)
      case 'failed':
        if (first) return first.reject(new OperatorError(report.sentence))
        return this.#options.logger.error({
          event: 'process.failed',
          process: number,
          reason: report.sentence,
        })
      case 'metrics':
        return this.#metrics.get(report.id)?.(report.text)
      default:
        return report satisfies never
    }
  }

  #onEnd(number: number, worker: Worker, reason: string): void {
    if (this.#running.get(number) !== worker) return
    this.#running.delete(number)
    this.#serving.delete(worker)
    if (this.#isStopping) {
      if (this.#running.size === 0) this.#ended.resolve()
      return
    }
    const first = this.#firstStarts.get(number)
    if (first) {
      const sentence = `API process ${number} ended while it started (${reason}). The lines above say why.`
      return first.reject(new OperatorError(sentence))
    }
    this.#options.logger.error({ event: 'process.ended', process: number, reason })
    const timer = setTimeout(() => {
      this.#restarts.delete(timer)
      this.#fork(number)
    }, RESTART_MS)
    this.#restarts.add(timer)
  }

  async #readMetricsOf(worker: Worker): Promise<string> {
    this.#requests += 1
    const id = this.#requests
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#metrics.set(id, resolve)
    send(worker, { kind: 'read-metrics', id })
    const late = () => new Error('the process does not report its metrics')
    try {
      return await withDeadline(promise, { timeoutMs: METRICS_MS_MAX, late })
    } finally {
      this.#metrics.delete(id)
    }
  }
}

/** If the process is gone, its exit is handled. */
function send(worker: Worker, request: ProcessRequest): void {
  if (worker.isConnected()) worker.send(request, () => {})
}
