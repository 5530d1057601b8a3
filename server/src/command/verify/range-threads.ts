import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import type { ChainRange, ConfirmedRange } from '../../outlet/verify/verify-range.ts'
import type { RangeAnswer, RangeThreadData } from './range-thread.ts'

/** A thread keeps one page of rows or one archived file in memory. Above these limits it fails, but not the process. */
const resourceLimits = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 512 }

type Thread = { worker: Worker; answered: PromiseWithResolvers<RangeAnswer> | null }
type Waiting = { range: ChainRange; answered: PromiseWithResolvers<RangeAnswer> }

/**
 * Verifies ranges in worker threads, one range per thread at a time. Each thread has its own database connection and
 * starts when it is first needed. If a thread ends, its range isn't confirmed.
 */
export class RangeThreads implements AsyncDisposable {
  readonly #threadsMax: number
  readonly #data: RangeThreadData
  readonly #threads = new Set<Thread>()
  readonly #waiting: Waiting[] = []

  constructor(threadsMax: number, data: RangeThreadData) {
    this.#threadsMax = threadsMax
    this.#data = data
  }

  async run(range: ChainRange): Promise<ConfirmedRange | null> {
    const answered = Promise.withResolvers<RangeAnswer>()
    this.#waiting.push({ range, answered })
    this.#assign()
    return await answered.promise
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const thread = this.#findIdle()
      const next = thread && this.#waiting.shift()
      if (!thread || !next) return
      thread.answered = next.answered
      thread.worker.postMessage(next.range, [])
    }
  }

  #findIdle(): Thread | null {
    const idle = this.#threads.values().find(({ answered }) => answered === null)
    if (idle) return idle
    return this.#threads.size < this.#threadsMax ? this.#start() : null
  }

  #start(): Thread {
    const worker = new Worker(new URL('range-thread.ts', import.meta.url), {
      resourceLimits,
      workerData: this.#data,
    })
    const thread: Thread = { worker, answered: null }
    this.#threads.add(thread)
    const end = (answer: RangeAnswer): void => {
      const { answered } = thread
      thread.answered = null
      answered?.resolve(answer)
    }
    worker.on('message', (answer: RangeAnswer) => {
      assert(thread.answered !== null, 'one answer for each range')
      end(answer)
      this.#assign()
    })
    // The cause doesn't matter: this process verifies the chain itself, and reports what is wrong.
    worker.on('error', () => {})
    worker.on('exit', () => {
      this.#threads.delete(thread)
      end(null)
      this.#assign()
    })
    return thread
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#waiting.length = 0
    await Promise.all([...this.#threads].map(({ worker }) => worker.terminate()))
  }
}
