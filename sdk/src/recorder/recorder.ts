import type { Connection } from '../client/connection.ts'
import { AnnalsApiError, AnnalsError, type ErrorDetail } from '../client/errors.ts'
import { parseJson } from '../client/parse-json.ts'
import { safely } from '../client/safely.ts'
import { sendEvents } from '../resource/events.ts'
import type { BatchResult, EventInput } from '../resource/types.ts'
import { MemoryQueue, type RecorderQueue, type Spool } from './queue.ts'

/** An event that the service will never store, and why. */
export type RefusedEvent = {
  /** Null if the spool contained something that isn't an event. */
  event: EventInput | null
  code: string
  error: string
  details: readonly ErrorDetail[]
}

export type RecorderOptions = {
  /** How long an event waits for others before it is sent. Default: 1 second. */
  flushMs?: number
  /** The maximum number of events that wait in memory. Default: 10,000. */
  maxQueue?: number
  /** Events per request, up to 500, which is the default. */
  maxBatch?: number
  /** How many requests are on their way at once. Default: 2. */
  concurrency?: number
  /** How long `close` waits for the service. Default: 10 seconds. */
  closeMs?: number
  /** Keeps events on disk until they are stored. See `diskSpool` of `@annals/sdk/node`. */
  spool?: Spool
  /** Called for each event that the service refuses. It is not sent again. */
  onRefused?: (refused: RefusedEvent) => void
  /** Called for each event that is dropped because the queue is full or the recorder is closed. */
  onDropped?: (event: EventInput) => void
  /** Called for each request that fails. Its events are sent again, after a pause that gets longer. */
  onError?: (error: unknown) => void
}

/** What became of the recorded events. */
export type RecorderStats = {
  /** Waiting or being sent. */
  queued: number
  /** Acknowledged by the service, in this process. */
  stored: number
  /** Never stored, because they are invalid. */
  refused: number
  /** Never stored, because the queue was full or the recorder was closed. */
  dropped: number
  /** Requests that failed and were repeated. */
  retries: number
}

const DEFAULTS = {
  flushMs: 1_000,
  maxQueue: 10_000,
  maxBatch: 500,
  concurrency: 2,
  closeMs: 10_000,
} as const
/** A character has at most three bytes, and the service accepts bodies of 4 MiB. */
const BATCH_CHARS_MAX = 1_300_000
/** The service refuses longer events, and one of them must not fill the queue. */
const EVENT_CHARS_MAX = 262_144
const FIRST_PAUSE_MS = 500
const PAUSE_MS_MAX = 30_000
const ASKED_PAUSE_MS_MAX = 600_000
/** These are about the content, so the same request can't succeed later. A proxy sends `http_413`. */
const CONTENT_CODES = new Set(['invalid_request', 'invalid_json', 'payload_too_large', 'http_413'])

/**
 * Records events without waiting for the service: `record` only puts an event into a queue, which is sent in
 * batches. Every event gets an idempotency key, so a batch whose outcome is unknown is sent again safely.
 *
 * ```ts
 * await using recorder = annals.recorder({ onRefused: report })
 * recorder.record({ category: 'billing', action: 'invoice.paid', actor: { id: 'u-17' } })
 * ```
 */
export class Recorder implements AsyncDisposable {
  readonly #connection: Connection
  readonly #options: RecorderOptions & typeof DEFAULTS
  readonly #queue: RecorderQueue
  readonly #stop = new AbortController()
  /** In the order of the queue. Only the oldest that are done can be settled. */
  readonly #inFlight: { count: number; isDone: boolean }[] = []
  #waiters: { settled: number; resolve: () => void; reject: (error: unknown) => void }[] = []
  #closing: Promise<RecorderStats> | null = null
  #isOpen = true
  #accepted: number
  #settled = 0
  #senders = 0
  #taking: Promise<unknown> = Promise.resolve()
  #timer: ReturnType<typeof setTimeout> | null = null
  #counts = { stored: 0, refused: 0, dropped: 0, retries: 0 }

  constructor(connection: Connection, options: RecorderOptions = {}) {
    this.#connection = connection
    const given = Object.entries(options).filter(([, value]) => value !== undefined)
    this.#options = { ...DEFAULTS, ...Object.fromEntries(given) }
    const { spool, maxQueue } = this.#options
    const onError = (error: unknown) => this.#report(error)
    this.#queue = spool?.open({ eventsInMemoryMax: maxQueue, onError }) ?? new MemoryQueue(maxQueue)
    this.#accepted = this.#queue.length
    if (this.#accepted > 0) this.#arm(0)
  }

  get stats(): RecorderStats {
    return { queued: this.#queue.length, ...this.#counts }
  }

  /**
   * Queues an event and returns immediately. False if it was dropped or is invalid. With a spool, the event
   * is on disk when this returns true. The event gets the current time unless it has a `timestamp`.
   */
  record(event: EventInput): boolean {
    const outcome = this.#enqueue(event)
    if (outcome === 'full') {
      this.#counts.dropped += 1
      safely(() => this.#options.onDropped?.(event))
    }
    return outcome === 'queued'
  }

  /** Queues an event, and waits while the queue is full. For callers that can slow down. */
  async recordOrWait(event: EventInput, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    while (this.#enqueue(event) === 'full') {
      if (!this.#isOpen) throw closedError()
      // Nothing is left that could make room.
      if (this.#queue.length === 0) throw queueFullError()
      this.#pump()
      await this.#settledUpTo(this.#settled + 1, signal)
    }
  }

  /** Resolves when the service has stored or refused everything that was recorded before the call. */
  async flush({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    this.#pump()
    await this.#settledUpTo(this.#accepted, signal)
  }

  /**
   * Stops accepting events and sends what is queued, for up to `closeMs`. What is left then is dropped, or
   * stays in the spool for the next process.
   */
  close(): Promise<RecorderStats> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #enqueue(event: EventInput): 'queued' | 'full' | 'invalid' {
    const line = this.#serialize(event)
    if (line === null) return 'invalid'
    if (!this.#isOpen || !this.#queue.push(line)) return 'full'
    this.#accepted += 1
    this.#arm(this.#options.flushMs)
    if (this.#queue.untaken >= this.#options.maxBatch) this.#pump()
    return 'queued'
  }

  /** Never throws, because an event that can't be sent must not fail the caller's request. */
  #serialize(event: EventInput): string | null {
    try {
      // The caller's fields can be undefined.
      const line = JSON.stringify({
        ...event,
        timestamp: event.timestamp ?? new Date(this.#connection.clock()).toISOString(),
        idempotencyKey: event.idempotencyKey ?? crypto.randomUUID(),
      })
      if (line.length <= EVENT_CHARS_MAX) return line
      this.#refuse({ event, code: 'payload_too_large', error: 'The event is too large.' })
    } catch (cause) {
      this.#refuse({ event, code: 'invalid_json', error: `The event isn't JSON: ${String(cause)}` })
    }
    return null
  }

  /** Every event has a timer that is due in time, so no wake-up can be lost. */
  #arm(waitMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#pump()
    }, waitMs)
  }

  /** Starts another sender if there is enough for one. */
  #pump(): void {
    const { concurrency, maxBatch } = this.#options
    const { untaken } = this.#queue
    const isWorthIt = this.#senders === 0 ? untaken > 0 : untaken >= maxBatch
    if (isWorthIt && this.#senders < concurrency) {
      this.#senders += 1
      void this.#drain()
    }
  }

  /** Sends batches until the queue is empty: while one is on its way, the next one fills. */
  async #drain(): Promise<void> {
    try {
      for (;;) {
        const batch = await this.#take()
        if (batch === null) return
        await this.#deliver(batch.lines)
        batch.entry.isDone = true
        this.#settle()
        this.#pump()
      }
    } catch (error) {
      this.#senders -= 1
      // Closed with events left, or the spool can't be read.
      if (!this.#stop.signal.aborted) {
        this.#report(error)
        this.#arm(PAUSE_MS_MAX)
      }
    }
  }

  /** One at a time, because the order of the batches in flight is the order of the queue. */
  #take() {
    const taken = this.#taking.then(async () => {
      const { maxBatch } = this.#options
      const lines = await this.#queue.take({ eventsMax: maxBatch, charsMax: BATCH_CHARS_MAX })
      const entry = { count: lines.length, isDone: false }
      if (lines.length > 0) this.#inFlight.push(entry)
      // Before anything else can run, so that the next event starts a new sender.
      else this.#senders -= 1
      return lines.length > 0 ? { lines, entry } : null
    })
    this.#taking = taken.catch(() => {})
    return taken
  }

  async #deliver(lines: readonly string[]): Promise<void> {
    const { signal } = this.#stop
    for (let attempt = 1; ; attempt += 1) {
      try {
        const batch = { body: `{"events":[${lines.join(',')}]}`, count: lines.length }
        const results = await sendEvents(this.#connection, batch, { signal, retriesMax: 0 })
        return this.#recordResults(lines, results)
      } catch (error) {
        signal.throwIfAborted()
        if (isContentError(error)) return await this.#splitBatch(lines, error)
        this.#counts.retries += 1
        this.#report(error)
        await this.#connection.sleep(pauseMs(error, attempt, this.#connection.random()), signal)
      }
    }
  }

  /** One bad event can fail a whole batch. Halving the batch isolates it, so the others are stored. */
  async #splitBatch(lines: readonly string[], error: AnnalsApiError): Promise<void> {
    const [first] = lines
    if (first !== undefined && lines.length === 1) {
      const { code, message, details } = error
      this.#refuse({ event: parseEvent(first), code, error: message, details })
      return
    }
    const middle = Math.ceil(lines.length / 2)
    await this.#deliver(lines.slice(0, middle))
    await this.#deliver(lines.slice(middle))
  }

  #recordResults(lines: readonly string[], results: readonly BatchResult[]): void {
    for (const [nth, result] of results.entries()) {
      if ('code' in result) {
        const { code, error, details = [] } = result
        this.#refuse({ event: parseEvent(lines[nth] ?? ''), code, error, details })
      } else {
        this.#counts.stored += 1
      }
    }
  }

  #refuse(refused: Omit<RefusedEvent, 'details'> & { details?: readonly ErrorDetail[] }): void {
    this.#counts.refused += 1
    safely(() => this.#options.onRefused?.({ details: [], ...refused }))
  }

  #settle(): void {
    while (this.#inFlight[0]?.isDone) {
      const count = this.#inFlight.shift()?.count ?? 0
      this.#settled += count
      this.#queue.settle(count)
    }
    for (const { settled, resolve } of this.#waiters) if (settled <= this.#settled) resolve()
  }

  async #settledUpTo(settled: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (settled <= this.#settled) return
    if (this.#stop.signal.aborted) throw closedError()
    const { promise, resolve, reject } = newPromise()
    const waiter = { settled, resolve, reject }
    const abort = () => reject(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiters.push(waiter)
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#waiters = this.#waiters.filter((other) => other !== waiter)
    }
  }

  async #close(): Promise<RecorderStats> {
    this.#isOpen = false
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(), this.#options.closeMs)
    await this.flush({ signal: controller.signal }).catch(() => {})
    clearTimeout(timer)
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#stop.abort()
    const left = this.#queue.length
    if (left > 0 && !this.#queue.isDurable) {
      this.#counts.dropped += left
      const message = `The recorder was closed with ${left} events that the service has not stored.`
      this.#report(new AnnalsError(message, { code: 'events_dropped' }))
    }
    this.#queue.close()
    for (const { reject } of this.#waiters) reject(closedError())
    return this.stats
  }

  #report(error: unknown): void {
    safely(() => this.#options.onError?.(error))
  }
}

function isContentError(error: unknown): error is AnnalsApiError {
  return error instanceof AnnalsApiError && CONTENT_CODES.has(error.code)
}

/** Grows up to half a minute. A longer wait that the service asks for is honored, up to ten minutes. */
function pauseMs(error: unknown, attempt: number, random: number): number {
  const retryAfterMs = error instanceof AnnalsApiError ? (error.retryAfterMs ?? 0) : 0
  const asked = Math.min(retryAfterMs, ASKED_PAUSE_MS_MAX)
  const grown = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** (attempt - 1))
  return Math.max(asked, grown / 2) + (random * grown) / 2
}

function parseEvent(line: string): EventInput | null {
  try {
    return parseJson(line)
  } catch {
    return null
  }
}

function closedError(): AnnalsError {
  return new AnnalsError('The recorder is closed.', { code: 'recorder_closed' })
}

function queueFullError(): AnnalsError {
  const message = 'The queue is empty, but has no room for the event. See onError for the reason.'
  return new AnnalsError(message, { code: 'queue_full' })
}

/** Node 20 has no `Promise.withResolvers`. */
function newPromise() {
  let resolve = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}
