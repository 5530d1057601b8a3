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
 * ApiError in its place, and the others are read as they are. What stands around the items is read
 * as strictly as ever.
 */
export function parseJsonItemBodies(
  app: FastifyInstance,
  { name, itemsMax }: { name: string; itemsMax: number },
): void {
  addJsonParser(app, (body) => {
    try {
      const value = parseStrictJson(body)
      refuseTooMany(itemsOf(value, name), { name, itemsMax })
      return value
    } catch (error) {
      const isItems = error instanceof StrictJsonError && error.path.startsWith(`/${name}/`)
      const text = body.toString()
      // The first fault may be an item's while the text breaks off further on.
      if (!isItems || !isJson(text)) throw error
      const { items, frame } = sliceItems(text)
      refuseTooMany(items, { name, itemsMax })
      return { ...parseFrame(frame), [name]: items.map(parseItem) }
    }
  })
}

function itemsOf(value: unknown, name: string): readonly unknown[] {
  const items: unknown = Object.entries(value ?? {}).find(([key]) => key === name)?.[1]
  return Array.isArray(items) ? items : []
}

/** Before anything looks at the items: two million fit a body, and take seconds to describe. */
function refuseTooMany(
  items: readonly unknown[],
  { name, itemsMax }: { name: string; itemsMax: number },
): void {
  if (items.length <= itemsMax) return
  const message = `must not have more than ${itemsMax} items`
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /${name} ${message}.`,
    details: [{ path: `/${name}`, message }],
  })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function parseFrame(text: string): object {
  const frame = parseStrictJson(Buffer.from(text))
  return typeof frame === 'object' && frame !== null ? frame : {}
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
