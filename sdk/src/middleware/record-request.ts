import { safely } from '../client/safely.ts'
import type { Recorder } from '../recorder/recorder.ts'
import type { Actor, EventInput, Resource } from '../resource/types.ts'
import { redact, REDACTED_NAMES, redactedPath, redactedQuery } from './redact.ts'

/** What the middleware of every framework knows about a finished request. */
export type RequestInfo = {
  method: string
  /** The path and the query. */
  url: string
  /** The pattern of the route, such as `/invoices/:id`. Null if the framework doesn't know it. */
  route: string | null
  status: number
  durationMs: number
  ip: string | null
  userAgent: string | null
}

/** How requests become events. `Request` is the request object of the framework. */
export type RecordOptions<Request> = {
  /** Who sent the request, such as `(request) => ({ id: request.user.id })`. */
  actor?: (request: Request) => Actor | undefined
  /** What the request is about. */
  resource?: (request: Request) => Resource | undefined
  /** Default: `http`. */
  category?: string
  /** Default: the method and the route, such as `POST /invoices/:id`. */
  action?: (request: Request, info: RequestInfo) => string
  /** Added to the metadata, after redaction. */
  metadata?: (request: Request, info: RequestInfo) => Record<string, unknown>
  /** Methods to record. Default: POST, PUT, PATCH and DELETE. */
  methods?: readonly string[]
  /** Requests to leave out. */
  skip?: (request: Request, info: RequestInfo) => boolean
  /** Names whose values are redacted in the query, path and metadata, in addition to the default ones. */
  redact?: readonly string[]
  /** The share of requests to record, from 0 to 1. Failed requests are always recorded. Default: 1. */
  sample?: number
  /** A random number from 0 up to 1, for tests. */
  random?: () => number
  /** Called if one of these functions throws. The request is not affected. */
  onError?: (error: unknown) => void
}

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']
const ACTION_CHARS_MAX = 256
const PATH_CHARS_MAX = 1_024

/** Records a finished request. Never throws, because a problem of the audit log must not fail the request. */
export function recordRequest<Request>(
  recorder: Pick<Recorder, 'record'>,
  request: Request,
  info: RequestInfo,
  options: RecordOptions<Request>,
): void {
  try {
    if (isRecorded(request, info, options)) recorder.record(eventOf(request, info, options))
  } catch (error) {
    safely(() => options.onError?.(error))
  }
}

function isRecorded<Request>(
  request: Request,
  info: RequestInfo,
  { methods = METHODS, skip, sample = 1, random = Math.random }: RecordOptions<Request>,
): boolean {
  if (!methods.includes(info.method) || skip?.(request, info)) return false
  return info.status >= 400 || sample >= 1 || random() < sample
}

function eventOf<Request>(
  request: Request,
  info: RequestInfo,
  options: RecordOptions<Request>,
): EventInput {
  const names = [...REDACTED_NAMES, ...(options.redact ?? [])]
  const { pathname, searchParams } = new URL(info.url, 'http://localhost')
  const path = redactedPath(pathname, info.route, names)
  const action = options.action?.(request, info) ?? `${info.method} ${info.route ?? path}`
  const actor = options.actor?.(request)
  const resource = options.resource?.(request)
  const query = redactedQuery(searchParams, names)
  const added = options.metadata?.(request, info)
  return {
    category: options.category ?? 'http',
    action: action.slice(0, ACTION_CHARS_MAX),
    ...(actor && { actor }),
    ...(resource && { resource }),
    metadata: {
      method: info.method,
      path: path.slice(0, PATH_CHARS_MAX),
      ...(query && { query }),
      status: info.status,
      durationMs: Math.round(info.durationMs),
      ...(info.ip !== null && { ip: info.ip }),
      ...(info.userAgent !== null && { userAgent: info.userAgent }),
      ...(added && asObject(redact(added, names))),
    },
  }
}

function asObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
