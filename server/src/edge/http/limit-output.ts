import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ApiError } from '../../errors.ts'
import { PAGE_BYTES_MAX } from '../../ledger/event-page.ts'
import type { OutputBudget } from './output-budget.ts'
import { companyOf } from './request-slots.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True if the route only reads, and a response can be as large as a page of events. */
    hasLargeResponses?: boolean
  }
}

/** A shorter response takes less memory than its connection, and connections are limited. */
const COUNTED_LENGTH_MIN = 1_024

/**
 * Limits the responses that clients have not read yet. A request is refused before its handler runs. A read
 * is checked again afterwards, because concurrent requests are all admitted before any of them counts.
 * Returns the check, to repeat it after a request has waited for a slot.
 *
 * Responses without a key or session don't count: they are short, or files that all connections share.
 * Downloads and live tails have their own limits.
 */
export function limitOutput(
  app: FastifyInstance,
  budget: OutputBudget,
): (request: FastifyRequest) => ApiError | null {
  const check = (request: FastifyRequest): ApiError | null => {
    const companyId = companyOf(request)
    if (companyId === null) return null
    const isLarge = hasLargeResponses(request)
    return budget.refusal(companyId, { bytes: isLarge ? PAGE_BYTES_MAX : 0, isLarge })
  }
  app.addHook('preValidation', (request, _reply, done) => done(check(request) ?? undefined))
  // Count before compression, because the uncompressed response is in memory until then.
  app.addHook('onSend', (request, reply, payload, done) => {
    const refusal =
      typeof payload === 'string' ? countUnread(budget, payload, { request, reply }) : null
    if (refusal) done(refusal)
    else done(null, payload)
  })
  return check
}

/** Counts a response until it is sent or its connection ends. */
function countUnread(
  budget: OutputBudget,
  payload: string,
  { request, reply: { raw, statusCode } }: { request: FastifyRequest; reply: FastifyReply },
): ApiError | null {
  const companyId = payload.length < COUNTED_LENGTH_MIN ? null : companyOf(request)
  // Nothing is sent to a client that disconnected, and `close` was already emitted.
  if (companyId === null || request.method === 'HEAD' || raw.destroyed) return null
  const bytes = Buffer.byteLength(payload)
  const isLarge = hasLargeResponses(request)
  if (statusCode < 400 && (isLarge || request.method === 'GET')) {
    const refusal = budget.refusal(companyId, { bytes, isLarge })
    if (refusal) return refusal
  }
  raw.once('close', budget.hold(companyId, bytes))
  return null
}

function hasLargeResponses({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.hasLargeResponses === true
}
