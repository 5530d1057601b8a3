import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import type { ReadBackAnswer } from './read-back-thread.ts'

/** It holds a row group at a time. Who needs more than this fails alone, and not the process. */
const resourceLimits = { maxYoungGenerationSizeMb: 48, maxOldGenerationSizeMb: 512 }

/**
 * Recomputes the hashes of segments in a thread of its own. It takes as long as reading and encoding
 * them, which go on meanwhile; and in a service, requests would wait for it. The thread is started
 * for the first segment. One segment at a time.
 */
export class ReadBack implements AsyncDisposable {
  #thread: Worker | null = null
  #waiting: PromiseWithResolvers<ReadBackAnswer> | null = null

  async recompute(file: Buffer): Promise<ReadBackAnswer> {
    assert(this.#waiting === null, 'one segment at a time')
    const waiting = (this.#waiting = Promise.withResolvers<ReadBackAnswer>())
    this.#thread ??= this.#start()
    // Copied and not handed over: a small buffer is a part of a pool.
    this.#thread.postMessage(file, [])
    try {
      return await waiting.promise
    } finally {
      this.#waiting = null
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL('read-back-thread.ts', import.meta.url), { resourceLimits })
    thread.on('message', (answer: ReadBackAnswer) => this.#waiting?.resolve(answer))
    thread.on('error', (error) => this.#waiting?.reject(error))
    thread.on('exit', () => {
      // The next segment gets a new one.
      this.#thread = null
      this.#waiting?.reject(new Error('the thread that reads segments back has ended'))
    })
    return thread
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread?.terminate()
  }
}
