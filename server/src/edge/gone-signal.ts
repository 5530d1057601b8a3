import type { FastifyReply } from 'fastify'
import { ApiError } from '../errors.ts'

/** Aborted when the client hangs up: what is asked for and has not begun need not begin. */
export function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  // Nobody is left to read it; what it says is that this is no fault of ours.
  raw.once('close', () => gone.abort(new ApiError('overloaded')))
  return gone.signal
}
