import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { flood, startReceiver } from './receiver.ts'

export type FloodOptions = { first: string; piece: string }

/**
 * A receiver that floods the sender, on a separate thread, so that its work doesn't count as work of the
 * service, which runs on this thread.
 */
export class FloodThread implements AsyncDisposable {
  readonly url: string
  readonly #worker: Worker

  static async start(options: FloodOptions): Promise<FloodThread> {
    const worker = new Worker(new URL(import.meta.url), { workerData: options })
    const [url] = await once(worker, 'message')
    return new FloodThread(worker, url)
  }

  private constructor(worker: Worker, url: string) {
    this.#worker = worker
    this.url = url
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

if (!isMainThread) {
  const { first, piece }: FloodOptions = workerData
  const receiver = await startReceiver(flood(first, piece), { requestsKeptMax: 0 })
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
  parentPort?.postMessage(receiver.url)
}
