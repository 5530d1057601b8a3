import type { components } from '../schema.ts'

/** The codes of the service. Later versions can add codes, so handle an unknown one by its status. */
export type ErrorCode = components['schemas']['ErrorCode']
/** One problem in a request: `path` is a JSON pointer into the body, or the name of a parameter. */
export type ErrorDetail = components['schemas']['ErrorDetail']

type ErrorInfo = {
  code: string
  status?: number | null
  traceId?: string | null
  details?: readonly ErrorDetail[]
  cause?: unknown
}

/** Every error of this package. Its subclasses say what kind of failure it was. */
export class AnnalsError extends Error {
  override name = 'AnnalsError'
  /** Identifies the error, such as `rate_limited` or `network_error`. Codes are stable. */
  readonly code: string
  /** The status of the response. Null if there was none. */
  readonly status: number | null
  /** Identifies the request in the service's log. Quote it when you report a problem. */
  readonly traceId: string | null
  /** The problems in the request, if the service named any. */
  readonly details: readonly ErrorDetail[]

  constructor(message: string, { code, status, traceId, details, cause }: ErrorInfo) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status ?? null
    this.traceId = traceId ?? null
    this.details = details ?? []
  }
}

/** The service, or a proxy in front of it, responded with an error. */
export class AnnalsApiError extends AnnalsError {
  override name = 'AnnalsApiError'
  /** How long the service asks to wait before a retry. Null if it doesn't say. */
  readonly retryAfterMs: number | null

  constructor(message: string, info: ErrorInfo & { retryAfterMs?: number | null }) {
    super(message, info)
    this.retryAfterMs = info.retryAfterMs ?? null
  }
}

/** There was no response, or it broke off. The outcome of the request is unknown. */
export class AnnalsNetworkError extends AnnalsError {
  override name = 'AnnalsNetworkError'
}

/** There was no complete response within `timeoutMs`. The outcome of the request is unknown. */
export class AnnalsTimeoutError extends AnnalsError {
  override name = 'AnnalsTimeoutError'
}
