import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import { type BodyLease, pauseBody } from './body-budget.ts'
import { areChunksTooSmall, CHUNK_BYTES_MIN, CHUNKS_MAX } from './chunk-limit.ts'

const EMPTY = Buffer.alloc(0)

/**
 * Collects a body of at most the route's `bodyLimit` in one growing buffer, and calls `done` once. Fastify's
 * own collector keeps a Buffer per chunk, so 4 MB in one-byte chunks take more than a gigabyte. A body of one
 * chunk isn't copied. A body that takes longer than `timeoutMs` is refused; if that is null, only the timeout
 * for whole requests applies. This also detects clients that disconnected before the call, whose requests
 * emit no more events.
 */
export function collectBody(
  { raw, routeOptions: { bodyLimit } }: FastifyRequest,
  {
    lease,
    timeoutMs,
    charge,
  }: {
    lease: BodyLease
    timeoutMs: number | null
    /** Called with the bytes received so far each time the buffer grows. Can refuse the rest. */
    charge?: (bytes: number) => ApiError | null
  },
  done: (fault: Error | null, body: Buffer) => void,
): void {
  if (raw.destroyed) return done(raw.errored ?? new ApiError('invalid_request'), EMPTY)
  const declared = raw.headers['content-length']
  const bytesMax = declared === undefined ? bodyLimit : Number(declared)
  if (bytesMax > bodyLimit) return done(tooLargeError(bodyLimit), EMPTY)
  let body: Buffer = EMPTY
  let length = 0
  let chunks = 0

  const settle = (fault: Error | null) => {
    raw.removeListener('data', onData)
    raw.removeListener('end', onEnd)
    raw.removeListener('error', settle)
    clearTimeout(timer)
    done(fault, body.length === length ? body : body.subarray(0, length))
  }
  const onData = (chunk: Buffer) => {
    const needed = length + chunk.length
    chunks += 1
    if (needed > bodyLimit) return settle(tooLargeError(bodyLimit))
    // With a declared length, each segment costs the sender a packet. Chunks don't.
    if (declared === undefined && areChunksTooSmall(chunks, needed)) {
      return settle(tooManyChunksError())
    }
    if (needed > body.length) {
      const capacity = length === 0 ? needed : capacityFor(needed, body.length, bytesMax)
      const refusal = charge?.(needed) ?? lease.grow(capacity - body.length)
      if (refusal) return settle(refusal)
      if (length === 0) body = chunk
      else body = growBuffer(body, length, capacity)
    }
    if (body !== chunk) chunk.copy(body, length)
    length = needed
    pauseBody(raw, lease.receive(chunk.length))
  }
  const onEnd = () => {
    const isWhole = declared === undefined || length === bytesMax
    settle(isWhole ? null : new ApiError('invalid_request'))
  }
  const onTimeout = () => settle(new ApiError('request_timeout'))
  const timer = timeoutMs === null ? undefined : setTimeout(onTimeout, timeoutMs)
  raw.on('data', onData)
  raw.on('end', onEnd)
  raw.on('error', settle)
}

/**
 * Doubles the capacity, so that each byte is copied about twice at most, but never exceeds the body's limit.
 */
function capacityFor(needed: number, capacity: number, bytesMax: number): number {
  return Math.max(needed, Math.min(2 * capacity, bytesMax))
}

function growBuffer(body: Buffer, length: number, capacity: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(capacity)
  body.copy(larger, 0, 0, length)
  return larger
}

function tooLargeError(bodyLimit: number): ApiError {
  return new ApiError('payload_too_large', {
    message: `The body is larger than ${bodyLimit} bytes. Send a smaller one.`,
  })
}

function tooManyChunksError(): ApiError {
  return new ApiError('invalid_request', {
    message: `The body has more than ${CHUNKS_MAX} chunks, with less than ${CHUNK_BYTES_MIN} bytes per chunk on average. Send larger chunks.`,
  })
}
