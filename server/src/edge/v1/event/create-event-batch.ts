import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { type AcceptDeps, acceptEvents, type AcceptResult } from '../../../intake/accept-event.ts'
import type { CompanyId } from '../../../platform/id.ts'
import { TimeSlice } from '../../../platform/scheduling/time-slice.ts'
import type { Hook, KeyGuard } from '../../auth/require-key.ts'
import { workspaceOf } from '../../auth/workspace-of.ts'
import { defineRoute } from '../../define-route.ts'
import { refuseHeaderKey } from '../../event/idempotency-header.ts'
import { parseJsonItemBodies } from '../../http/json-body.ts'
import {
  EVENT_BYTES_MAX,
  EVENTS_PER_REQUEST_MAX,
  EventBatch,
  EventBatchFrame,
  EventBatchResults,
  EventInput,
} from '../../schema/event.ts'
import { compileValidator, createParser } from '../../validate.ts'

const BODY_BYTES_MAX = 4 * 1_024 * 1_024

type BatchDeps = AcceptDeps & { keyGuard: KeyGuard }

/** POST /v1/events/batch: up to 500 events per call. An invalid event doesn't affect the others. */
export const createEventBatch = defineRoute({
  method: 'POST',
  path: '/v1/events/batch',
  key: { scope: 'WORKSPACE', permission: 'events:write' },
  config: { hasOwnLimits: true },
  options: {
    bodyLimit: BODY_BYTES_MAX,
    // The document describes the items, but validation skips them, because each item gets its own result.
    validatorCompiler: (part) =>
      compileValidator(part.httpPart === 'body' ? { ...part, schema: EventBatchFrame } : part),
  },
  summary: 'Send several events',
  description:
    'Each event is stored or refused on its own. An event can have up to 256 KiB of JSON, and the body up to 4 MiB. A batch costs one rate limit token per event, or one per 256 KiB of body if that is more. Set `idempotencyKey` on each event: batches with an `Idempotency-Key` header are refused.',
  body: EventBatch,
  response: EventBatchResults,
  before: chargeBody,
  handle: (deps: BatchDeps) => async (request) => {
    const inputs = await parseInputs(request.body.events, request.principal.companyId)
    const origin = {
      companyId: request.principal.companyId,
      workspaceId: workspaceOf(request.principal),
      traceId: request.id,
      span: request.span,
    }
    const receipts = await acceptEvents(inputs, origin, deps)
    return { results: receipts.map(resultOf) }
  },
})

/** Charges for the body before it is read, and for its items while it is parsed. */
function chargeBody({ keyGuard, writer }: BatchDeps, app: FastifyInstance): Hook {
  // The rate limit headers belong to the reply, which the parser doesn't know.
  const replies = new WeakMap<FastifyRequest, FastifyReply>()
  const charge = (request: FastifyRequest, size: { items: number; bytes: number }) => {
    const reply = replies.get(request)
    return reply ? keyGuard.charge(request, reply, costOf(size)) : null
  }
  parseJsonItemBodies(app, {
    name: 'events',
    itemsMax: EVENTS_PER_REQUEST_MAX,
    itemBytesMax: EVENT_BYTES_MAX,
    charge,
  })
  return async (request, reply) => {
    refuseHeaderKey(request.raw)
    writer.refuseWhenFull(request.principal)
    replies.set(request, reply)
    // Before the body is read, so that a key without tokens can't make the node read megabytes.
    const refusal = charge(request, { items: 0, bytes: declaredBytes(request) })
    if (refusal) throw refusal
  }
}

/** A body that is too large is refused without being read, so it isn't charged by size. */
function declaredBytes({ headers }: FastifyRequest): number {
  const bytes = Number(headers['content-length'] ?? 0)
  return bytes > BODY_BYTES_MAX ? 0 : bytes
}

/** A body costs more by size than by events only if events are oversized or it has other content. */
function costOf({ items, bytes }: { items: number; bytes: number }): number {
  return Math.max(1, items, Math.floor(bytes / EVENT_BYTES_MAX))
}

const parseInput = createParser(EventInput)

async function parseInputs(
  events: readonly unknown[],
  companyId: CompanyId,
): Promise<(Static<typeof EventInput> | ApiError)[]> {
  const slice = new TimeSlice(companyId)
  const inputs: (Static<typeof EventInput> | ApiError)[] = []
  for (const event of events) {
    inputs.push(event instanceof ApiError ? event : parseInput(event))
    if (slice.isOver) await slice.next()
  }
  return inputs
}

function resultOf(receipt: AcceptResult | ApiError) {
  if (receipt instanceof ApiError) {
    const { message, code, details } = receipt
    return { status: 400 as const, error: message, code, ...(details && { details: [...details] }) }
  }
  const { id, isNew, hasOtherBody } = receipt
  const status = isNew ? (201 as const) : (200 as const)
  return { id, status, ...(hasOtherBody && { mismatch: true as const }) }
}
