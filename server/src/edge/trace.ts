import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ApiError } from '../errors.ts'
import { randomHex } from '../platform/id.ts'
import type { RemoteParent, Span, Tracer } from '../platform/otlp/tracer.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null if the request isn't sampled. */
    span: Span | null
  }
}

/** W3C Trace Context: trace id, parent id and flags. An id of all zeros is invalid. */
const TRACEPARENT =
  /^([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Returns the caller's trace id if it sent one, or else a new one of 32 hex digits. */
export function traceIdOf(headers: IncomingHttpHeaders): string {
  return parentOf(headers)?.traceId ?? newTraceId()
}

export function newTraceId(): string {
  return randomHex(16)
}

/** The caller's span, or null if it sent none. */
function parentOf({ traceparent }: IncomingHttpHeaders): RemoteParent | null {
  const parts = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null
  const [, version, traceId, spanId, flags = '', more] = parts ?? []
  // Version 00 has four fields, later versions may have more, and ff is invalid.
  if (!traceId || !spanId || version === 'ff') return null
  if (version === '00' && more !== undefined) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Starts a span for each request. Call it before other hooks are added. */
export function traceRequests(app: FastifyInstance, tracer: Tracer | null): void {
  app.decorateRequest('span', null)
  if (!tracer) return
  app.addHook('onRequest', (request, reply, done) => {
    const { id, method, routeOptions } = request
    // The template of the path. The path itself can contain ids of tenants.
    const route = routeOptions.url
    const name = route === undefined ? method : `${method} ${route}`
    const span = tracer.startRequest(name, id, parentOf(request.headers))
    if (span) {
      request.span = span
      span.attributes['http.request.method'] = method
      if (route !== undefined) span.attributes['http.route'] = route
      // Also emitted if the client disconnects before the response, or the response is cut.
      reply.raw.once('close', () => endWithResponse(span, reply))
    }
    done()
  })
}

function endWithResponse(span: Span, { raw }: FastifyReply): void {
  const { headersSent, statusCode, writableFinished } = raw
  if (headersSent) span.attributes['http.response.status_code'] = statusCode
  if (!writableFinished) span.fail('connection_closed')
  else if (statusCode >= 500) span.fail(String(statusCode))
  span.end()
}

/** The query of a list of events, which reads only the database. */
export const EVENT_QUERY = {
  name: 'query events',
  attributes: { 'db.system.name': 'postgresql' },
} as const

/** Measures a read of events as a child of the request's span. */
export async function traceRead<T>(
  { span: parent }: { span: Span | null },
  { name, attributes = {} }: { name: string; attributes?: Readonly<Record<string, string>> },
  read: () => Promise<T>,
): Promise<T> {
  if (!parent) return await read()
  using span = parent.startChild(name, 'client')
  Object.assign(span.attributes, attributes)
  try {
    return await read()
  } catch (error) {
    const type = failureOf(error)
    if (type !== null) span.fail(type)
    throw error
  }
}

/** Null if the caller caused the error, such as an unknown id. */
function failureOf(error: unknown): string | null {
  if (error instanceof ApiError) return error.status >= 500 ? error.code : null
  return error instanceof Error ? error.name : 'unknown'
}
