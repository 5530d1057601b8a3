import type { FastifyInstance } from 'fastify'
import { ApiError } from '../errors.ts'
import { sliceItems } from '../platform/json-items.ts'
import { parseStrictJson, StrictJsonError } from '../platform/strict-json.ts'

/**
 * JSON is the only body there is, and it is read strictly: what a double cannot hold, duplicate
 * keys and broken text are refused before anything looks at the value. An empty body is no body,
 * whatever its content type, so that a POST without one may carry the header.
 */
export function parseJsonBodies(app: FastifyInstance): void {
  addJsonParser(app, parseStrictJson)
}

/**
 * The same for a route whose body is `{ "<name>": [ … ] }`: an item that cannot be kept becomes an
 * ApiError in its place, and the others are read as they are.
 */
export function parseJsonItemBodies(app: FastifyInstance, name: string): void {
  addJsonParser(app, (body) => {
    try {
      return parseStrictJson(body)
    } catch (error) {
      const isItems = error instanceof StrictJsonError && error.path.startsWith(`/${name}/`)
      if (!isItems || error.kind === 'syntax') throw error
      return { [name]: sliceItems(body.toString()).map(parseItem) }
    }
  })
}

function parseItem(text: string): unknown {
  try {
    return parseStrictJson(Buffer.from(text))
  } catch (error) {
    if (error instanceof StrictJsonError) return refusalOf(error)
    throw error
  }
}

function addJsonParser(app: FastifyInstance, parse: (body: Buffer) => unknown): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (_request, body, done) => {
      try {
        done(null, body.length === 0 ? undefined : parse(body))
      } catch (error) {
        done(error instanceof StrictJsonError ? refusalOf(error) : toError(error))
      }
    },
  )
}

function refusalOf({ kind, path, message }: StrictJsonError): ApiError {
  if (kind === 'syntax') {
    return new ApiError('invalid_json', { message: `The body is not valid JSON: ${message}` })
  }
  return new ApiError('invalid_request', { message, details: [{ path, message }] })
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
