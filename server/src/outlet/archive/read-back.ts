import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import type { ReadBackResult } from './read-back-thread.ts'

/** The thread keeps one row group in memory. Above these limits the thread fails, but not the process. */
const resourceLimits = { maxYoungGenerationSizeMb: 48, maxOldGenerationSizeMb: 512 }

/**
 * Recomputes the hashes of segments in a worker thread, one segment at a time. That takes as long as reading
 * and encoding them, which continue meanwhile. On the main thread, requests would have to wait. The thread
 * starts with the first segment.
 */
export class ReadBack implements AsyncDisposable {
  #thread: Worker | null = null
  #waiting: PromiseWithResolvers<ReadBackResult> | null = null

  async recompute(file: Buffer): Promise<ReadBackResult> {
    assert(this.#waiting === null, 'one segment at a time')
    const waiting = (this.#waiting = Promise.withResolvers<ReadBackResult>())
    this.#thread ??= this.#start()
    // Copies instead of transferring, because a small buffer can be part of a shared pool.
    this.#thread.postMessage(file, [])
    try {
      return await waiting.promise
    } finally {
      this.#waiting = null
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL('read-back-thread.ts', import.meta.url), { resourceLimits })
    thread.on('message', (answer: ReadBackResult) => this.#waiting?.resolve(answer))
    thread.on('error', (error) => this.#waiting?.reject(error))
    thread.on('exit', () => {
      // The next segment starts a new thread.
      this.#thread = null
      this.#waiting?.reject(new Error('the thread that reads segments back has ended'))
    })
    return thread
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread?.terminate()
  }
}
