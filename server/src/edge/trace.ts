import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** W3C Trace Context, version 00: the second field is the trace id, and all zeros is none. */
const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** The caller's trace id when it sent one, else 32 fresh hex digits. */
export function traceIdOf(headers: IncomingHttpHeaders): string {
  const traceparent = headers.traceparent
  if (typeof traceparent === 'string' && !traceparent.startsWith('ff')) {
    const traceId = TRACEPARENT.exec(traceparent)?.[1]
    if (traceId) return traceId
  }
  return newTraceId()
}

export function newTraceId(): string {
  return randomBytes(16).toString('hex')
}
