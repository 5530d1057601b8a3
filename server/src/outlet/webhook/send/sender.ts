import assert from 'node:assert/strict'
import { StringDecoder } from 'node:string_decoder'
import { type buildConnector, type Dispatcher, Pool } from 'undici'
import { type Clock, systemClock } from '../../../platform/time/clock.ts'
import { type AttemptOutcome, ERROR_CLASSES } from '../delivery/delivery.ts'
import { RESPONSE_BYTES_MAX } from './connector.ts'

/** Legitimate receivers send one or two, such as 103 Early Hints. */
const INFORMATIONAL_RESPONSES_MAX = 10
const MESSAGE_LENGTH_MAX = 200
const CAUSES_MAX = 5

export type SenderOptions = {
  /**
   * Opens the connections. It offers HTTP/1.1 only, names its failures with `errorClass`, and closes a
   * connection whose receiver sends too much (see `openLimitedSocket`).
   */
  connect: buildConnector.connector
  /** How long the receiver asks us to wait, from its `Retry-After`, or null if that is invalid. */
  readRetryAfter: (header: string, nowMs: number) => number | null
  /** For the whole attempt: waiting for a connection, opening it, and receiving the response headers. */
  timeoutMs?: number
  /** For the response body, once the headers have arrived. Never extends beyond `timeoutMs`. */
  bodyGraceMs?: number
  excerptBytesMax?: number
  /** Null for no limit. */
  connectionsPerOriginMax?: number | null
  /** How long an idle connection stays open, even if the receiver offers a longer time. */
  connectionIdleMs?: number
  /** Beyond this, the connections of the least recently used origin are closed. */
  originsMax?: number
  clock?: Clock
}

export type OutboundRequest = {
  url: string
  headers: Record<string, string>
  body: Buffer | string
  /** Removes what the excerpt of the response must not contain. A cut one may end in the middle of it. */
  hide?: (excerpt: string, about: { isCut: boolean }) => string
}
/** With `isCanceled`, nothing was written because the service is stopping. Ignore the outcome then. */
export type SendResult = { outcome: AttemptOutcome; durationMs: number; isCanceled?: true }

/**
 * The only client for requests to receivers. A send never rejects: every result is an `AttemptOutcome`. It
 * neither retries nor follows redirects. The retry schedule decides on the next attempt.
 *
 * It manages its own pools instead of using undici's Agent. The Agent drops an origin only on a disconnect
 * with nothing pending, and an aborted request still counts as pending: each receiver that timed out would
 * stay forever, and once there are `maxOrigins` of them, the Agent refuses every new one.
 */
export class Sender implements AsyncDisposable {
  readonly #limits: AttemptLimits
  readonly #poolOptions: Pool.Options
  readonly #originsMax: number
  /** By origin, least recently used first. */
  readonly #pools = new Map<string, Pool>()
  /** Pools that take no new requests, and close after the requests they have. */
  readonly #retiredPools = new Set<Pool>()
  readonly #attempts = new Set<Attempt>()
  #isStopped = false

  constructor({
    connect,
    readRetryAfter,
    timeoutMs = 15_000,
    bodyGraceMs = 1_000,
    excerptBytesMax = 16 * 1_024,
    connectionsPerOriginMax = null,
    connectionIdleMs = 4_000,
    originsMax = 1_000,
    clock = systemClock,
  }: SenderOptions) {
    assert(excerptBytesMax <= RESPONSE_BYTES_MAX, 'an excerpt is a part of what is read')
    this.#limits = { readRetryAfter, timeoutMs, bodyGraceMs, excerptBytesMax, clock }
    this.#originsMax = originsMax
    this.#poolOptions = {
      connect,
      connections: connectionsPerOriginMax,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: connectionIdleMs,
      keepAliveMaxTimeout: connectionIdleMs,
      // Never reached, because the limit of a response is lower: undici creates an error for every header
      // beyond this size, and 64 kB of short headers took 350 ms of CPU time.
      maxHeaderSize: 2 * RESPONSE_BYTES_MAX,
      // We enforce a single deadline instead: undici's timeouts have a resolution of half a second, and a
      // body that arrives slowly keeps renewing them.
      headersTimeout: 0,
      bodyTimeout: 0,
    }
  }

  /** Origins with connections, or with requests that wait for one. */
  get originCount(): number {
    return this.#pools.size
  }

  send({ url, headers, body, hide = (excerpt) => excerpt }: OutboundRequest): Promise<SendResult> {
    if (this.#isStopped) return Promise.resolve(unsentResult(STOPPED))
    const target = URL.parse(url)
    if (target === null || !/^https?:$/.test(target.protocol)) {
      return Promise.resolve(
        unsentResult({ errorClass: 'connect', message: 'The URL is not valid.' }),
      )
    }
    const refusedName = findRefusedHeader(headers)
    if (refusedName !== null) {
      const message = oneLine(`The header ${JSON.stringify(refusedName)} can't be sent.`)
      return Promise.resolve(unsentResult({ errorClass: 'connect', message }))
    }
    const path = target.pathname + target.search
    return new Promise((resolve) => {
      const attempt = new Attempt(this.#limits, hide, (sent) => {
        this.#attempts.delete(attempt)
        resolve(sent)
      })
      this.#attempts.add(attempt)
      this.#poolOf(target.origin).dispatch({ method: 'POST', path, headers, body }, attempt)
    })
  }

  /** Cancels the requests that still wait for a connection. They will never be written. */
  cancelUnsent(): void {
    for (const attempt of this.#attempts) attempt.cancelUnsent()
  }

  #poolOf(origin: string): Pool {
    const pool = this.#pools.get(origin) ?? this.#openPool(origin)
    this.#pools.delete(origin)
    this.#pools.set(origin, pool)
    if (this.#pools.size > this.#originsMax) {
      for (const [unusedOrigin, unusedPool] of this.#pools) {
        this.#retire(unusedOrigin, unusedPool)
        break
      }
    }
    return pool
  }

  #openPool(origin: string): Pool {
    const pool = new Pool(origin, this.#poolOptions)
    const retireIfUnused = () => {
      // The client removes the aborted request from its queue only after this event.
      queueMicrotask(() => {
        const { connected, size } = pool.stats
        if (connected === 0 && size === 0) this.#retire(origin, pool)
      })
    }
    return pool.on('disconnect', retireIfUnused).on('connectionError', retireIfUnused)
  }

  #retire(origin: string, pool: Pool): void {
    if (pool.closed || pool.destroyed) return
    this.#pools.delete(origin)
    this.#retiredPools.add(pool)
    void pool.close().then(() => this.#retiredPools.delete(pool))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true
    const stopped = Object.assign(new Error(STOPPED.message), { errorClass: STOPPED.errorClass })
    const pools = [...this.#pools.values(), ...this.#retiredPools]
    await Promise.all(pools.map((pool) => pool.destroy(stopped)))
  }
}

type AttemptLimits = Required<
  Pick<SenderOptions, 'readRetryAfter' | 'timeoutMs' | 'bodyGraceMs' | 'excerptBytesMax' | 'clock'>
>
type Hide = NonNullable<OutboundRequest['hide']>
type Unreachable = Extract<AttemptOutcome, { kind: 'unreachable' }>
type Failure = Omit<Unreachable, 'kind'>
type Head = { responseStatus: number; retryAfterMs: number | null }

const STOPPED: Failure = {
  errorClass: 'reset',
  message: 'The service stopped before the receiver responded. The receiver is not the cause.',
}

const TOO_MANY_INFORMATIONAL: Failure = {
  errorClass: 'reset',
  message: `The receiver sent more than ${INFORMATIONAL_RESPONSES_MAX} informational responses.`,
}

/**
 * One request. The response status decides, whether or not the body is slow, endless, truncated or of the
 * wrong length. Otherwise, a receiver with a broken body would get an event that it accepted again and again.
 * The body only helps users find the cause of an error, so it gets little time and space.
 */
class Attempt implements Dispatcher.DispatchHandler {
  readonly #limits: AttemptLimits
  readonly #hide: Hide
  readonly #startedAtMs = performance.now()
  readonly #decoder = new StringDecoder('utf8')
  /** Null once the outcome is reported. The connection may still read the rest of the response then. */
  #resolve: ((sent: SendResult) => void) | null
  /** The deadline of the attempt. Once the headers have arrived, that of the body. */
  #timer: NodeJS.Timeout
  /** Null until the request starts to be written, so nothing has been sent while it is null. */
  #controller: Dispatcher.DispatchController | null = null
  #head: Head | null = null
  #informationalCount = 0
  #responseBytes = 0
  #excerpt = ''
  /** Whether the excerpt may have ended in the middle of the response. */
  #isCut = true

  constructor(limits: AttemptLimits, hide: Hide, resolve: (sent: SendResult) => void) {
    this.#limits = limits
    this.#hide = hide
    this.#resolve = resolve
    this.#timer = setTimeout(endInTime, limits.timeoutMs, this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The deadline passed while the request waited for a connection. An error withdraws it before
    // a byte is written; an abort would close the connection, which others can use.
    if (this.#resolve === null) throw new Error('The attempt is over.')
    this.#controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    responseStatus: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (responseStatus < 200) return this.#countInformational()
    const { readRetryAfter, timeoutMs, bodyGraceMs, clock } = this.#limits
    const retryAfter = headers['retry-after']
    const retryAfterMs = typeof retryAfter === 'string' ? readRetryAfter(retryAfter, clock()) : null
    this.#head = { responseStatus, retryAfterMs }
    clearTimeout(this.#timer)
    const leftMs = timeoutMs - (performance.now() - this.#startedAtMs)
    this.#timer = setTimeout(endInTime, Math.min(bodyGraceMs, leftMs), this)
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Buffer): void {
    const { excerptBytesMax } = this.#limits
    const room = excerptBytesMax - this.#responseBytes
    this.#responseBytes += bytes.length
    if (room > 0) this.#excerpt += this.#decoder.write(bytes.subarray(0, room))
    if (this.#responseBytes >= excerptBytesMax) this.#settle()
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer)
    this.#isCut = false
    if (this.#resolve !== null) this.#excerpt += this.#decoder.end()
    this.#settle()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    clearTimeout(this.#timer)
    // Also `reset` if the receiver closed a reused connection just as we wrote: if undici notices earlier,
    // it opens a new one on its own, and later we can't know what the receiver has read.
    this.#settle(failureOf(error, { isSent: this.#controller !== null }))
  }

  /** Reports what is known so far, and closes the connection. */
  end(failure?: Failure): void {
    clearTimeout(this.#timer)
    this.#settle(failure)
    this.#controller?.abort(new Error('The attempt is over.'))
  }

  cancelUnsent(): void {
    if (this.#controller !== null || this.#resolve === null) return
    clearTimeout(this.#timer)
    const resolve = this.#resolve
    this.#resolve = null
    resolve({ ...unsentResult(STOPPED), isCanceled: true })
  }

  #countInformational(): void {
    this.#informationalCount += 1
    if (this.#informationalCount > INFORMATIONAL_RESPONSES_MAX) this.end(TOO_MANY_INFORMATIONAL)
  }

  #settle(failure?: Failure): void {
    const resolve = this.#resolve
    if (resolve === null) return
    this.#resolve = null
    const outcome: AttemptOutcome =
      this.#head === null
        ? { kind: 'unreachable', ...(failure ?? this.#timeout()) }
        : outcomeOf(this.#head, this.#storableExcerpt())
    resolve({ outcome, durationMs: Math.round(performance.now() - this.#startedAtMs) })
  }

  #storableExcerpt(): string {
    const shown = this.#hide(this.#excerpt, { isCut: this.#isCut })
    return toStorableText(shown, this.#limits.excerptBytesMax)
  }

  #timeout(): Failure {
    const missing = this.#controller === null ? 'There was no connection' : 'There was no response'
    const message = `${missing} within ${this.#limits.timeoutMs / 1_000} seconds.`
    return { errorClass: 'timeout', message }
  }
}

function endInTime(attempt: Attempt): void {
  attempt.end()
}

function outcomeOf({ responseStatus, retryAfterMs }: Head, excerpt: string): AttemptOutcome {
  if (responseStatus < 300) return { kind: 'accepted', responseStatus, excerpt }
  const errorClass = responseStatus < 400 ? 'redirect' : 'http'
  return { kind: 'refused', responseStatus, errorClass, retryAfterMs, excerpt }
}

/** PostgreSQL rejects NUL. The replacement character has three bytes, so the text can exceed the limit. */
function toStorableText(text: string, bytesMax: number): string {
  const withoutNul = text.replaceAll('\0', '\uFFFD')
  if (withoutNul.length * 3 <= bytesMax) return withoutNul
  return new StringDecoder('utf8').write(Buffer.from(withoutNul).subarray(0, bytesMax))
}

/**
 * Finds headers that undici would refuse: its pool never reuses a client that refused a request, so a few
 * dozen of them would block the origin for all webhooks. undici writes the headers about the connection and
 * the length itself, and `host` comes from the URL.
 */
function findRefusedHeader(headers: Record<string, string>): string | null {
  for (const name in headers) {
    if (RESERVED_HEADERS.has(name.toLowerCase()) || !HEADER_NAME.test(name)) return name
    if (!HEADER_VALUE.test(headers[name] ?? '')) return name
  }
  return null
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const RESERVED_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

/** The connector classifies its own errors. All others happen on an open connection. */
function failureOf(error: Error, { isSent }: { isSent: boolean }): Failure {
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    const errorClass = 'errorClass' in cause ? readErrorClass(cause.errorClass) : null
    if (errorClass !== null) return { errorClass, message: oneLine(cause.message) }
    cause = cause.cause
  }
  if (!isSent) return { errorClass: 'connect', message: 'No connection could be opened.' }
  const code = 'code' in error ? String(error.code) : ''
  if (/^(ERR_SSL_|EPROTO$)/.test(code)) {
    return { errorClass: 'tls', message: 'The receiver ended the TLS session.' }
  }
  if (code === 'ETIMEDOUT') {
    return { errorClass: 'timeout', message: 'The connection to the receiver was lost.' }
  }
  return { errorClass: 'reset', message: resetMessage(error) }
}

function readErrorClass(value: unknown): Failure['errorClass'] | null {
  const errorClass = ERROR_CLASSES.find((known) => known === value)
  return errorClass && errorClass !== 'http' && errorClass !== 'redirect' ? errorClass : null
}

function resetMessage({ name, message }: Error): string {
  if (name === 'HTTPParserError') return "The receiver's response is not HTTP/1.1."
  // undici's messages for an unexpected 100 or 101. It skips other 1xx responses.
  if (/^bad (response|upgrade)$/.test(message)) return 'The receiver sent an unexpected response.'
  return 'The receiver closed the connection before it responded.'
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= MESSAGE_LENGTH_MAX ? line : `${line.slice(0, MESSAGE_LENGTH_MAX - 1)}…`
}

function unsentResult(failure: Failure): SendResult {
  return { outcome: { kind: 'unreachable', ...failure }, durationMs: 0 }
}
