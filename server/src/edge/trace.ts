import type { IncomingHttpHeaders } from 'node:http'
import { randomHex } from '../platform/id.ts'

/** W3C Trace Context: the second field is the trace id, and all zeros is none. */
const TRACEPARENT =
  /^([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/

/** The caller's trace id when it sent one, else 32 fresh hex digits. */
export function traceIdOf({ traceparent }: IncomingHttpHeaders): string {
  const parts = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null
  const [, version, traceId, more] = parts ?? []
  // Version 00 has four fields; later versions may have more; ff is none.
  if (!traceId || version === 'ff' || (version === '00' && more !== undefined)) return newTraceId()
  return traceId
}

export function newTraceId(): string {
  return randomHex(16)
}
