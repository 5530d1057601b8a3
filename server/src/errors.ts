/** Every error a client can see. Codes are part of the API contract: add freely, never rename. */
const ERRORS = {
  invalid_request: [400, 'The request does not match the schema.'],
  invalid_json: [400, 'The body is not valid JSON.'],
  invalid_cursor: [400, 'The cursor is not valid for this query. Start again without it.'],
  unknown_project: [400, 'The workspace has no project with this id.'],
  missing_api_key: [
    401,
    'The API key is missing. Send it in the header Authorization: Bearer <key>.',
  ],
  invalid_api_key: [401, 'This API key is unknown or revoked. Use an active key.'],
  expired_api_key: [401, 'This API key has expired. Create a new one in the dashboard.'],
  not_signed_in: [401, 'You are not signed in. Sign in and try again.'],
  insufficient_scope: [
    403,
    "This key can't call this operation. Use a key with the required scope.",
  ],
  plan_required: [403, "The company's plan doesn't include this operation. Upgrade the plan."],
  ip_not_allowed: [
    403,
    "This address is not on the company's IP allowlist. Add it in the dashboard.",
  ],
  dashboard_only: [403, 'Keys can only be created and rotated in the dashboard.'],
  insufficient_role: [403, "Your role doesn't allow this. Ask an admin of your company."],
  second_factor_required: [
    403,
    'Your company requires a second factor. Set one up in the dashboard, then try again.',
  ],
  cross_site: [403, 'This request came from another site. Send it from the dashboard.'],
  not_found: [404, 'No such resource.'],
  method_not_allowed: [
    405,
    "This path doesn't support this method. Use one from the Allow header.",
  ],
  request_timeout: [408, 'The request did not arrive in time. Send it again.'],
  export_not_downloadable: [409, 'This export can no longer be downloaded. Rerun it.'],
  conflict: [409, 'The request conflicts with the current state of the resource.'],
  payload_too_large: [413, 'The body is too large. Send a smaller one.'],
  download_too_large: [413, 'The download is too large for the dashboard. Use the API.'],
  unsupported_media_type: [
    415,
    'The body is not JSON. Send it with Content-Type: application/json.',
  ],
  rate_limited: [429, 'Too many requests. Retry after the delay in the Retry-After header.'],
  headers_too_large: [431, 'The request headers are too large. Send fewer or shorter ones.'],
  internal: [500, 'Something went wrong on our side. Include the trace id when you report it.'],
  overloaded: [503, 'The service is at capacity. Retry after the delay in the Retry-After header.'],
  unavailable: [
    503,
    'The database is unavailable. Retry after the delay in the Retry-After header.',
  ],
  archive_restoring: [
    503,
    'Archived data is being restored. Retry after the delay in the Retry-After header.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type ErrorCode = keyof typeof ERRORS

export const ERROR_CODES = Object.keys(ERRORS).filter(isErrorCode)

/** One problem in the input: `path` is a JSON pointer into the body, or a parameter's name. */
export type ErrorDetail = { path: string; message: string }

/** An error response to the caller. The status comes from the table, never from the throw site. */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly code: ErrorCode
  readonly status: number
  readonly details: readonly ErrorDetail[] | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: ErrorCode,
    options: {
      message?: string
      details?: readonly ErrorDetail[]
      retryAfterSeconds?: number
      cause?: unknown
    } = {},
  ) {
    const [status, message] = ERRORS[code]
    const { stackTraceLimit } = Error
    // Collecting a stack trace costs more than the rest of the response, and 4xx errors are not logged.
    if (status < 500) Error.stackTraceLimit = 0
    super(options.message ?? message, { cause: options.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.status = status
    this.details = options.details
    // Every 503 and 429 tells the caller when to retry.
    this.retryAfterSeconds =
      options.retryAfterSeconds ?? (this.status === 503 || this.status === 429 ? 1 : undefined)
  }
}

export function statusOf(code: ErrorCode): number {
  return ERRORS[code][0]
}

/** What the code means, as `error` says it unless the service knows more. */
export function errorMessageOf(code: ErrorCode): string {
  return ERRORS[code][1]
}

/** Ends the program with exit code 1. The operator sees only the message, without a stack trace. */
export class OperatorError extends Error {
  override name = 'OperatorError'
}

function isErrorCode(code: string): code is ErrorCode {
  return code in ERRORS
}
