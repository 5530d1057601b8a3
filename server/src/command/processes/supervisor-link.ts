import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { endProcess } from '../../platform/end-process.ts'
import type { Logger } from '../../platform/logger.ts'
import type { ProcessStart, ProcessReport, ProcessRequest } from './messages.ts'

/** How an API process talks to its supervisor. If the supervisor is gone, the process stops cleanly. */
export class SupervisorLink implements Disposable {
  #start: ProcessStart = { number: 0, port: 0, pagesFolder: null }
  #logger: Logger | null = null
  #isServing = false

  /** Null in a process without a supervisor. */
  static async open(): Promise<SupervisorLink | null> {
    if (!cluster.worker) return null
    const link = new SupervisorLink(cluster.worker)
    const [request]: ProcessRequest[] = await once(process, 'message')
    if (request?.kind !== 'start') throw new Error('The supervisor has to send `start` first.')
    link.#start = request
    return link
  }

  private constructor(worker: Worker) {
    // Without this, Node would end the process at once when the supervisor is gone.
    worker.exitedAfterDisconnect = true
    // What Node itself sends to a supervisor that is gone fails here. `disconnect` follows.
    process.on('error', () => {})
    process.once('disconnect', this.#onLost)
  }

  readonly #onLost = (): void => {
    this.#logger?.warn({ event: 'supervisor.lost' })
    // Without the supervisor, a process that is starting would wait forever for its port.
    if (!this.#isServing) endProcess(0)
    process.kill(process.pid, 'SIGTERM')
  }

  get start(): ProcessStart {
    return this.#start
  }

  logTo(logger: Logger): void {
    this.#logger = logger
  }

  /** Call this once the process serves requests. */
  async announce({
    url,
    readMetrics,
  }: {
    url: string
    readMetrics: () => Promise<string>
  }): Promise<void> {
    this.#isServing = true
    process.on('message', (request: ProcessRequest) => {
      if (request.kind !== 'read-metrics') return
      const { id } = request
      // The supervisor counts metrics that don't arrive.
      readMetrics().then(
        (text) => send({ kind: 'metrics', id, text }),
        () => {},
      )
    })
    await send({ kind: 'started', url })
  }

  async reportFailure(sentence: string): Promise<void> {
    await send({ kind: 'failed', sentence })
  }

  /** Without this, the channel would keep the process running. */
  [Symbol.dispose](): void {
    process.off('disconnect', this.#onLost)
    if (process.connected) process.disconnect()
  }
}

/** Resolves when it is sent. Does nothing if the supervisor is gone. */
async function send(report: ProcessReport): Promise<void> {
  await new Promise<void>((resolve) => {
    if (process.connected) process.send?.(report, () => resolve())
    else resolve()
  })
}
