import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'

/** A `preValidation` hook for routes without a body. Accepts `{}`, because some clients send it. */
export async function refuseBody({ body }: FastifyRequest): Promise<void> {
  const isEmpty = typeof body === 'object' && body !== null && Object.keys(body).length === 0
  if (body === undefined || (isEmpty && !Array.isArray(body))) return
  throw new ApiError('invalid_request', {
    message: 'This operation does not accept a body. Send none.',
  })
}

/** A `preValidation` hook for routes whose fields are all optional: no body means an empty one. */
export async function readAbsentBody(request: FastifyRequest): Promise<void> {
  request.body ??= {}
}
