import type { Logger } from '../logger.ts'
import { type BoundedFetch } from '../outbound/bounded-fetch.ts'
import type { Secret } from '../secret/secret.ts'
import { parseJson } from '../json/parse-json.ts'

/** Transient, by the OTLP specification. After any other error response, a retry would fail too. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const TIMEOUT_MS = 10_000
const RETRY_AFTER_MS_MAX = 60_000

export type OtlpSignal = 'traces' | 'metrics'

export type SendOutcome =
  /** `rejectedCount`: how many of the spans or data points the receiver didn't accept. */
  | { kind: 'sent'; rejectedCount: number }
  | { kind: 'failed'; mayRetry: boolean; retryAfterMs: number }

/** `count` is the number of spans or data points in the body. */
export type OtlpBatch = { body: string; count: number }

export type OtlpTarget = { url: string; headers: Secret<Record<string, string>> | null }

type ClientOptions = OtlpTarget & {
  signal: OtlpSignal
  fetch: BoundedFetch
  logger: Logger
  /** Aborted when the time to stop is over. */
  endSignal: AbortSignal
}

/** Sends the exports of one signal. Logs when they start to fail and when they work again, not each failure. */
export class OtlpClient {
  readonly #options: ClientOptions
  #isFailing = false

  constructor(options: ClientOptions) {
    this.#options = options
  }

  async send({ body, count }: OtlpBatch): Promise<SendOutcome> {
    const { url, headers, fetch, endSignal } = this.#options
    const request = {
      method: 'POST',
      headers: { ...headers?.reveal(), 'content-type': 'application/json' },
      body,
    }
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    try {
      const response = await fetch(url, request, AbortSignal.any([timeout, endSignal]))
      return await this.#read(response, count)
    } catch (error) {
      const reason = timeout.aborted ? `no response within ${TIMEOUT_MS / 1_000} s` : String(error)
      this.#noteFailure(reason)
      return { kind: 'failed', mayRetry: true, retryAfterMs: 0 }
    }
  }

  async #read(response: Response, count: number): Promise<SendOutcome> {
    const { status, headers } = response
    if (status < 200 || status > 299) {
      this.#noteFailure(`the receiver responded with ${status}`)
      const retryAfterMs = Number(headers.get('retry-after') ?? 0) * 1_000 || 0
      const mayRetry = RETRYABLE.has(status)
      return { kind: 'failed', mayRetry, retryAfterMs: Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) }
    }
    const given = rejectedIn(await response.text(), this.#options.signal)
    const rejectedCount = Math.trunc(Math.min(Math.max(given, 0), count)) || 0
    if (rejectedCount !== given)
      this.#noteFailure("the receiver rejected a number that can't be right")
    else if (rejectedCount > 0) this.#noteFailure('the receiver accepted only a part')
    else this.#noteSuccess()
    return { kind: 'sent', rejectedCount }
  }

  #noteFailure(reason: string): void {
    const { signal, logger, endSignal } = this.#options
    if (this.#isFailing || endSignal.aborted) return
    this.#isFailing = true
    logger.warn({ event: 'telemetry.failed', signal, reason })
  }

  #noteSuccess(): void {
    if (!this.#isFailing) return
    this.#isFailing = false
    const { signal, logger } = this.#options
    logger.info({ event: 'telemetry.recovered', signal })
  }
}

/**
 * A receiver reports a partial success in the body. Any other body means that everything was accepted. The number
 * can be anything, even NaN. In OTLP, it is a string.
 */
function rejectedIn(text: string, signal: OtlpSignal): number {
  const field = signal === 'traces' ? 'rejectedSpans' : 'rejectedDataPoints'
  try {
    const value: unknown = parseJson(text).partialSuccess?.[field] ?? 0
    return typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN
  } catch {
    return 0
  }
}
