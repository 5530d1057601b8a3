import type { FastifyReply } from 'fastify'
import { ApiError } from '../errors.ts'

/** Aborts when the client disconnects, so that work that hasn't started yet is skipped. */
export function goneSignal({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal {
  const gone = new AbortController()
  // The client left: no one reads this error, and it counts as no fault of ours.
  const leave = () => gone.abort(new ApiError('overloaded'))
  raw.once('close', leave)
  // It may have left before, and then `close` was emitted already.
  if (raw.destroyed) leave()
  return gone.signal
}
