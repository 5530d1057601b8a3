import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import { parseStrictJson, StrictJsonError } from '../platform/strict-json.ts'

/**
 * JSON is the only body there is, and it is read strictly: what a double cannot hold, duplicate
 * keys and broken text are refused before anything looks at the value. An empty body is no body,
 * whatever its content type, so that a POST without one may carry the header.
 */
export function parseJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (_request, body, done) => {
      if (body.length === 0) {
        done(null, undefined)
        return
      }
      try {
        done(null, parseStrictJson(body))
      } catch (error) {
        done(error instanceof StrictJsonError ? refusalOf(error) : toError(error))
      }
    },
  )
}

function refusalOf({ kind, path, message }: StrictJsonError): ApiError {
  if (kind === 'syntax')
    return new ApiError('invalid_json', { message: `The body is not valid JSON: ${message}` })
  return new ApiError('invalid_request', { message, details: [{ path, message }] })
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
