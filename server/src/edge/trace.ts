import type { IncomingHttpHeaders } from 'node:http'
import { randomHex } from '../platform/id.ts'

/** W3C Trace Context: the second field is the trace id. All zeros is invalid. */
const TRACEPARENT =
  /^([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** Returns the caller's trace id if it sent one, or else a new one of 32 hex digits. */
export function traceIdOf({ traceparent }: IncomingHttpHeaders): string {
  const parts = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null
  const [, version, traceId, more] = parts ?? []
  // Version 00 has four fields, later versions may have more, and ff is invalid.
  if (!traceId || version === 'ff' || (version === '00' && more !== undefined)) return newTraceId()
  return traceId
}

export function newTraceId(): string {
  return randomHex(16)
}
