import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, type ErrorCode } from '../errors.ts'
import { isOutage, isOutOfDescriptors, isRetryable } from '../platform/pg/database.ts'
import { RepeatedWarning } from '../platform/repeated-warning.ts'
import { respondImmediately, type DelayRefusal } from './http/throttle/delay-responses.ts'

/** Fastify's own errors that a client can cause. */
const FASTIFY_CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_ASYNC_CONSTRAINT: 'invalid_request',
}

type ErrorHandler = (
  error: FastifyError | ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
) => void

/** Turns every error into a response, and logs unexpected ones. This is the only place that does either. */
export function createErrorHandler(delay: DelayRefusal = respondImmediately): ErrorHandler {
  const unavailable = new RepeatedWarning('request.unavailable')
  return (error, request, reply) => {
    if (isHangUp(error, request)) {
      request.log.debug({ event: 'request.aborted', traceId: request.id })
      // No one is left to answer. Thousands of clients can disconnect at once, so do no more work.
      reply.hijack()
      return
    }
    const apiError = toApiError(error)
    if (apiError.code === 'internal') {
      request.log.error({ event: 'request.failed', traceId: request.id, err: error })
    } else if (apiError.code === 'unavailable') {
      unavailable.warn(request.log, { traceId: request.id, err: error })
    }
    delay({ error: apiError, request, reply }, () => sendError(reply, apiError, request.id))
  }
}

function sendError(reply: FastifyReply, error: ApiError, traceId: string): void {
  reply.code(error.status).header('x-trace-id', traceId)
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds)
  if (error.status === 401 && error.code !== 'not_signed_in') {
    reply.header('www-authenticate', 'Bearer')
  }
  // Fastify would close the connection of a caller that is still sending, which might then lose the response.
  // The connection gate drops the rest of the body instead, unless it takes too long.
  const isEarly = error.status === 413 || (error.status !== 408 && !reply.request.raw.complete)
  if (isEarly && reply.raw.shouldKeepAlive) reply.removeHeader('connection')
  // The handler may have chosen another serializer for its response.
  reply.serializer(JSON.stringify).type('application/json; charset=utf-8')
  reply.send(errorBody(error, traceId))
}

export function errorBody({ message, code, details }: ApiError, traceId: string) {
  return { error: message, code, traceId, ...(details && { details }) }
}

/** For a path, which the router decodes, and for a query, which we check ourselves. */
export function invalidUrlError(cause?: unknown): ApiError {
  const message = 'The URL is not percent-encoded UTF-8.'
  return new ApiError('invalid_request', { message, cause })
}

const RETRY = 'Retry after the delay in the Retry-After header.'
/** The database is there, but ended the statement: it took too long, or was in conflict with another one. */
const INCOMPLETE = `The database did not complete this request. ${RETRY}`
const OUT_OF_DESCRIPTORS = `This node can't open another file or connection. ${RETRY}`

export function toApiError(error: FastifyError | ApiError): ApiError {
  if (error instanceof ApiError) return error
  const known = FASTIFY_CODES[error.code]
  if (known) return new ApiError(known, { cause: error })
  if (error.code === 'FST_ERR_BAD_URL') return invalidUrlError(error)
  if (isOutage(error)) return new ApiError('unavailable', { cause: error })
  if (isRetryable(error)) return new ApiError('unavailable', { message: INCOMPLETE, cause: error })
  if (isOutOfDescriptors(error)) {
    return new ApiError('unavailable', { message: OUT_OF_DESCRIPTORS, cause: error })
  }
  const isClients = error.statusCode !== undefined && error.statusCode < 500
  return new ApiError(isClients ? 'invalid_request' : 'internal', { cause: error })
}

/**
 * True if the client disconnected while sending its body. The error code alone can't tell: a broken
 * database socket has the same one. So the source of the error decides.
 */
export function isHangUp(error: Error, { raw }: FastifyRequest): boolean {
  return error === raw.errored
}
