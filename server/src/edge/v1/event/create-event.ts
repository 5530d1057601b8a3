import { type AcceptDeps, acceptEvent } from '../../../intake/accept-event.ts'
import { workspaceOf } from '../../auth/workspace-of.ts'
import { defineRoute } from '../../define-route.ts'
import { IdempotencyHeader, withHeaderKey } from '../../event/idempotency-header.ts'
import { EVENT_BYTES_MAX, EventReceipt, EventInput } from '../../schema/event.ts'
import { compileValidator } from '../../validate.ts'

/** POST /v1/events: 201 for a new event, 200 if an event with the idempotency key is already stored. */
export const createEvent = defineRoute({
  method: 'POST',
  path: '/v1/events',
  key: { scope: 'WORKSPACE', permission: 'events:write' },
  config: { hasOwnLimits: true },
  options: {
    bodyLimit: EVENT_BYTES_MAX,
    // `withHeaderKey` checks the header.
    validatorCompiler: (part) =>
      part.httpPart === 'headers' ? () => true : compileValidator(part),
  },
  summary: 'Send an event',
  description:
    'Responds after the event is durably stored. Retries are safe with an idempotency key: if an event with the key is already stored, the response is 200 with its ID and `x-idempotent-replay: true`. If the stored event has a different body, the response also has `x-idempotency-mismatch: true`.',
  headers: IdempotencyHeader,
  body: EventInput,
  errors: ['unknown_project'],
  response: {
    200: { ...EventReceipt, description: 'An event with this idempotency key is already stored.' },
    201: { ...EventReceipt, description: 'The event is stored.' },
  },
  before:
    ({ writer }: AcceptDeps) =>
    async ({ principal }) =>
      writer.refuseWhenFull(principal),
  handle: (deps: AcceptDeps) => async (request, reply) => {
    const origin = {
      companyId: request.principal.companyId,
      workspaceId: workspaceOf(request.principal),
      traceId: request.id,
      span: request.span,
    }
    const event = withHeaderKey(request.body, request.raw)
    const receipt = await acceptEvent(event, origin, deps)
    if (!receipt.isNew) reply.header('x-idempotent-replay', 'true')
    if (receipt.hasOtherBody) reply.header('x-idempotency-mismatch', 'true')
    return await reply.code(receipt.isNew ? 201 : 200).send({ id: receipt.id })
  },
})
