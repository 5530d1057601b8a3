import { type Body, readBody } from '../webhook/read-body.ts'
import type { CallOptions, Connection } from './connection.ts'
import {
  AnnalsApiError,
  AnnalsNetworkError,
  AnnalsTimeoutError,
  type ErrorDetail,
} from './errors.ts'
import { parseJson } from './parse-json.ts'
import { parseRetryAfter, type RetryPolicy, retryWaitMs } from './retry.ts'

/** A value of a query parameter. Arrays repeat the parameter. */
type QueryValue = string | number | boolean | null | undefined | readonly string[]

export type ApiRequest = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Starts with a slash. */
  path: string
  query?: Record<string, QueryValue>
  /** A string is sent unchanged, as JSON. */
  body?: object | string
  accept?: string
  /** Default: `safe` for all methods except POST. */
  retryPolicy?: RetryPolicy
}

/** 64 MiB. The service refuses to send more than 48 MB at once. */
const BODY_BYTES_MAX = 67_108_864
/** 64 KiB. The service's errors name at most 20 problems and are smaller. */
const ERROR_BYTES_MAX = 65_536

/** The JSON body of the response. */
export function sendJson<T>(
  connection: Connection,
  request: ApiRequest,
  options?: CallOptions,
): Promise<T> {
  return send<T>(connection, request, options, readJson)
}

export function sendText(
  connection: Connection,
  request: ApiRequest,
  options?: CallOptions,
): Promise<string> {
  return send(connection, request, options, readText)
}

/**
 * Sends a request until it succeeds, fails for good, or has been repeated often enough. `read` is part of
 * each attempt, so that a body that breaks off is requested again.
 */
export async function send<T>(
  connection: Connection,
  request: ApiRequest,
  options: CallOptions = {},
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const retryPolicy = request.retryPolicy ?? (request.method === 'POST' ? 'if-refused' : 'safe')
  const { retryAfterMsMax, random } = connection
  const retriesMax = options.retriesMax ?? connection.retriesMax
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce(connection, request, options, read)
    } catch (error) {
      const limits = { attempt, retriesMax, retryAfterMsMax, retryPolicy, random }
      const waitMs = retryWaitMs(error, limits)
      if (waitMs === null) throw error
      await connection.sleep(waitMs, options.signal)
    }
  }
}

async function sendOnce<T>(
  connection: Connection,
  request: ApiRequest,
  { signal, timeoutMs = connection.timeoutMs }: CallOptions,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  const name = `${request.method} ${request.path}`
  let isTimedOut = false
  const timer = setTimeout(() => {
    isTimedOut = true
    controller.abort()
  }, timeoutMs)
  try {
    const response = await connection.fetch(urlOf(connection, request), {
      method: request.method,
      headers: headersOf(connection, request),
      // A redirect would turn a POST into a GET, or send the body to another host.
      redirect: 'manual',
      signal: controller.signal,
      ...(request.body !== undefined && { body: bodyText(request.body) }),
    })
    if (!response.ok) throw await apiErrorOf(response, connection.clock())
    return await read(response)
  } catch (cause) {
    if (cause instanceof AnnalsApiError) throw cause
    signal?.throwIfAborted()
    if (isTimedOut) {
      const message = `${name} got no complete response within ${timeoutMs} ms.`
      throw new AnnalsTimeoutError(message, { code: 'timeout', cause })
    }
    const message = `${name} failed without a complete response.`
    throw new AnnalsNetworkError(message, { code: 'network_error', cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

export function urlOf({ baseUrl }: Connection, { path, query = {} }: ApiRequest): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue
    for (const item of typeof value === 'object' ? value : [value]) {
      parameters.append(name, String(item))
    }
  }
  const search = parameters.toString()
  return `${baseUrl}${path}${search && `?${search}`}`
}

export function headersOf(
  { apiKey }: Connection,
  { accept = 'application/json', body }: ApiRequest,
): Record<string, string> {
  return {
    authorization: `Bearer ${apiKey}`,
    accept,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
}

function bodyText(body: object | string): string {
  return typeof body === 'string' ? body : JSON.stringify(body)
}

async function apiErrorOf(response: Response, nowMs: number): Promise<AnnalsApiError> {
  return toApiError({
    status: response.status,
    text: await readErrorText(response.body),
    header: (name) => response.headers.get(name),
    nowMs,
  })
}

/** The error of a response, even if a proxy sent it and its body isn't JSON. */
export function toApiError({
  status,
  text,
  header,
  nowMs,
}: {
  status: number
  text: string
  header: (name: string) => string | null
  nowMs: number
}): AnnalsApiError {
  const body = parseError(text)
  const unknown =
    status >= 300 && status < 400
      ? `The service responded with a redirect (${status}). Check baseUrl.`
      : `The response has status ${status} but is not an Annals error. Check baseUrl and any proxies.`
  return new AnnalsApiError(body?.error ?? unknown, {
    code: body?.code ?? `http_${status}`,
    status,
    traceId: body?.traceId ?? header('x-trace-id'),
    details: body?.details ?? [],
    retryAfterMs: parseRetryAfter(header('retry-after'), nowMs),
  })
}

type ErrorBody = { error: string; code: string; traceId?: string; details?: ErrorDetail[] }

function parseError(text: string): ErrorBody | null {
  try {
    const body: unknown = parseJson(text)
    return isErrorBody(body) ? body : null
  } catch {
    return null
  }
}

function isErrorBody(body: unknown): body is ErrorBody {
  return (
    typeof body === 'object' &&
    body !== null &&
    'error' in body &&
    typeof body.error === 'string' &&
    'code' in body &&
    typeof body.code === 'string'
  )
}

export async function readJson<T>(response: Response): Promise<T> {
  return parseBody(await readText(response), response)
}

function parseBody(text: string, response: Response) {
  try {
    // The response to a deletion is empty.
    if (text === '' && response.status === 204) return undefined
    return parseJson(text)
  } catch (cause) {
    throw unexpectedResponse(response, 'The response is not JSON.', cause)
  }
}

async function readText(response: Response): Promise<string> {
  const body = await readBody(response.body, BODY_BYTES_MAX)
  if (body === null) throw unexpectedResponse(response, 'The response is larger than 64 MiB.')
  return decode(body)
}

/** Empty if the body is too large to be an error of the service. */
export async function readErrorText(body: Body): Promise<string> {
  return decode(await readBody(body, ERROR_BYTES_MAX))
}

function decode(body: Uint8Array | null): string {
  return new TextDecoder().decode(body ?? undefined)
}

function unexpectedResponse(
  { status, headers }: Response,
  problem: string,
  cause?: unknown,
): AnnalsApiError {
  return new AnnalsApiError(`${problem} Check baseUrl and proxies.`, {
    code: 'unexpected_response',
    status,
    traceId: headers.get('x-trace-id'),
    cause,
  })
}
