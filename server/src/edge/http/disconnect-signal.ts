import type { FastifyReply } from 'fastify'
import { ApiError } from '../../errors.ts'

/** Aborts when the client disconnects, so that work that hasn't started yet is skipped. */
export function disconnectSignal({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal {
  const gone = new AbortController()
  // The client disconnected. Nothing reads this error, and it doesn't count as a failure.
  const abort = () => gone.abort(new ApiError('overloaded'))
  raw.once('close', abort)
  // If it disconnected earlier, `close` was already emitted.
  if (raw.destroyed) abort()
  return gone.signal
}
