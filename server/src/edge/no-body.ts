import type { FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'

/** A `preValidation` hook of routes without a body. `{}` says nothing, and some clients send it. */
export async function refuseBody({ body }: FastifyRequest): Promise<void> {
  const isEmpty = typeof body === 'object' && body !== null && Object.keys(body).length === 0
  if (body === undefined || (isEmpty && !Array.isArray(body))) return
  throw new ApiError('invalid_request', { message: 'This operation takes no body.' })
}

/** A `preValidation` hook of routes whose body has optional fields only: no body is an empty one. */
export async function readAbsentBody(request: FastifyRequest): Promise<void> {
  request.body ??= {}
}
