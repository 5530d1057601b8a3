import type { Logger } from '../logger.ts'
import { Loop } from '../scheduling/loop.ts'
import type { OtlpBatch, OtlpClient, SendOutcome } from './otlp-client.ts'
import { encodeSpans, type Resource } from './otlp-json.ts'
import type { Span } from './tracer.ts'

const QUEUE_SPANS_MAX = 2_048
const BATCH_SPANS_MAX = 512
const TRIES_MAX = 5
const RETRY_MS_MIN = 1_000
const RETRY_MS_MAX = 60_000

type SpanExporterOptions = {
  client: Pick<OtlpClient, 'send'>
  resource: Resource
  everyMs: number
  logger: Logger
}

/** What is being sent. Kept for retries. */
type SpanBatch = OtlpBatch & { tries: number }

/**
 * Sends ended spans in batches. Never waits for the receiver where spans end: beyond the size of the queue, new
 * spans are dropped and counted. Memory is bounded by the queue and one encoded batch.
 */
export class SpanExporter implements AsyncDisposable {
  readonly #options: SpanExporterOptions
  readonly #loop: Loop
  #queue: Span[] = []
  #batch: SpanBatch | null = null
  #failedInARow = 0
  #retryAtMs = Number.NEGATIVE_INFINITY
  #droppedCount = 0

  constructor(options: SpanExporterOptions) {
    const { everyMs, logger } = options
    this.#options = options
    this.#loop = new Loop({ name: 'span-export', everyMs, logger, run: () => this.#run() })
  }

  get droppedCount(): number {
    return this.#droppedCount
  }

  add(span: Span): void {
    if (this.#queue.length >= QUEUE_SPANS_MAX) {
      this.#droppedCount += 1
      return
    }
    this.#queue.push(span)
    if (this.#queue.length === BATCH_SPANS_MAX) void this.#loop.runNow()
  }

  /** Returns the time until the next run, or nothing for the usual interval. */
  async #run(): Promise<number | void> {
    const waitMs = this.#retryAtMs - performance.now()
    if (waitMs > 0) return waitMs
    await this.#sendNext()
    if (this.#failedInARow > 0) return Math.max(0, this.#retryAtMs - performance.now())
    if (this.#queue.length >= BATCH_SPANS_MAX) return 0
  }

  /** Returns false if there is nothing to send, or the receiver failed. */
  async #sendNext(): Promise<boolean> {
    const batch = (this.#batch ??= this.#takeBatch())
    if (!batch) return false
    batch.tries += 1
    const outcome = await this.#options.client.send(batch)
    if (outcome.kind === 'sent') {
      this.#droppedCount += outcome.rejectedCount
      this.#batch = null
      this.#failedInARow = 0
      return true
    }
    this.#noteFailure(batch, outcome)
    return false
  }

  #noteFailure(
    batch: SpanBatch,
    { mayRetry, retryAfterMs }: Extract<SendOutcome, { kind: 'failed' }>,
  ): void {
    if (!mayRetry || batch.tries >= TRIES_MAX) {
      this.#droppedCount += batch.count
      this.#batch = null
    }
    const delayMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(this.#failedInARow, 10))
    this.#failedInARow += 1
    this.#retryAtMs = performance.now() + Math.max(delayMs, retryAfterMs)
  }

  #takeBatch(): SpanBatch | null {
    if (this.#queue.length === 0) return null
    const spans = this.#queue.splice(0, BATCH_SPANS_MAX)
    return { body: encodeSpans(spans, this.#options.resource), count: spans.length, tries: 0 }
  }

  /** Sends what is left until the receiver fails. The client's `endSignal` limits the time. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
    while (await this.#sendNext());
  }
}
