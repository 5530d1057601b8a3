import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ApiError } from '../errors.ts'
import { type ClientAddresses, networkOf } from './auth/client-address.ts'
import { areChunksTooSmall } from './chunk-limit.ts'
import type { RefusalThrottle } from './refusal-throttle.ts'

type Refused = { error: ApiError; request: FastifyRequest; reply: FastifyReply }

/** Calls `answer` once, now or later. */
export type DelayRefusal = (refused: Refused, answer: () => void) => void

export const answerImmediately: DelayRefusal = (_refused, answer) => answer()

/**
 * Delays refusals in a flood. The request has left its handler by then, so it uses neither a slot nor
 * the body budget while it waits.
 */
export function delayRefusals(throttle: RefusalThrottle, addresses: ClientAddresses): DelayRefusal {
  return (refused, answer) => {
    const { request, reply } = refused
    const caller = reply.raw.destroyed ? null : floodingCaller(refused, addresses)
    if (caller === null) return answer()
    const release = throttle.hold(caller, reply.raw, answer)
    if (!request.raw.complete && !reply.sent) dropBody(request, release)
  }
}

/**
 * By whom a refusal is counted, or null if it is never delayed. A valid key or session is delayed only
 * for exceeding a limit. Without one, the caller's network counts. A database that is unavailable is
 * not the caller's fault.
 */
function floodingCaller(
  { error: { status, code }, request }: Refused,
  addresses: ClientAddresses,
): string | null {
  const { key, viewer } = request
  if (key) return code === 'rate_limited' ? `key ${key.id}` : null
  if (viewer) return code === 'rate_limited' ? `member ${viewer.userId}` : null
  if (status >= 500 && code !== 'overloaded') return null
  return `network ${networkOf(addresses.of(request))}`
}

/** Keeps nothing of the body while its refusal waits. Tiny chunks end the delay: they cost too much. */
function dropBody({ raw }: FastifyRequest, release: () => void): void {
  const isChunked = raw.headers['transfer-encoding'] !== undefined
  let chunks = 0
  let bytes = 0
  raw.on('data', (chunk: Buffer) => {
    chunks += 1
    bytes += chunk.length
    if (isChunked && areChunksTooSmall(chunks, bytes)) release()
  })
}
