import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { StrictJsonError } from '../platform/json-fault.ts'
import { sliceItems } from '../platform/json-items.ts'
import type { JsonReaderOptions } from '../platform/json-reader.ts'
import { JSON_AT_ONCE_BYTES_MAX, parseStrictJson, readLargeJson } from '../platform/strict-json.ts'
import { runAtOnce, runInSlices, type SliceOwner, TimeSlice } from '../platform/time-slice.ts'
import type { BodyBudget } from './body-budget.ts'
import { collectBody } from './collect-body.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Shared by every route of the node. */
    bodyBudget: BodyBudget
  }
}

/** An event's metadata is the only field that can have any shape and size. */
const READER: JsonReaderOptions = { canonicalMember: 'metadata', keysMax: 1_000 }

/**
 * JSON is the only body there is, and it is read strictly: what a double cannot hold, duplicate
 * keys and broken text are refused before anything looks at the value. An empty body is no body,
 * whatever its content type, so that a POST without one may carry the header.
 *
 * Small bodies are parsed in one go, large ones in slices. In a large body, `metadata` becomes a
 * `CanonicalJson`.
 */
export function parseJsonBodies(app: FastifyInstance, bodyBudget: BodyBudget): void {
  app.decorate('bodyBudget', bodyBudget)
  addJsonParser(app, readText)
}

/**
 * The same for a route whose body is `{ "<name>": [ … ] }`. An item that is larger than `itemBytesMax`
 * or can't be stored becomes an `ApiError` in its place, and the others are read as usual. Everything
 * around the items is parsed strictly.
 */
export function parseJsonItemBodies(
  app: FastifyInstance,
  {
    name,
    itemsMax,
    itemBytesMax,
  }: {
    name: string
    itemsMax: number
    itemBytesMax: number
  },
): void {
  addJsonParser(app, async (body, caller) => {
    const slicing = sliceItems(body, { name, itemsMax })
    const isSmall = body.length <= JSON_AT_ONCE_BYTES_MAX
    const sliced = isSmall ? runAtOnce(slicing) : await runInSlices(slicing, caller)
    if (!sliced) throw tooMany({ name, itemsMax })
    const { items, frame } = sliced
    try {
      const around = await readText(frame, caller)
      if (items.length === 0) return around
      return { ...objectOf(around), [name]: await readItems(items, { itemBytesMax, caller }) }
    } catch (error) {
      // If a part isn't valid JSON, neither is the whole. Report the first error with its byte offset
      // in the whole body.
      if (items.length > 0 && isSyntaxFault(error)) await readText(body, caller)
      throw error
    }
  })
}

/** Returns a promise only for large texts. Most bodies are small and are parsed synchronously. */
function readText(text: Buffer, caller: SliceOwner): unknown {
  if (text.length <= JSON_AT_ONCE_BYTES_MAX) return parseStrictJson(text)
  return readLargeJson(text, READER, caller)
}

async function readItems(
  items: readonly Buffer[],
  { itemBytesMax, caller }: { itemBytesMax: number; caller: SliceOwner },
): Promise<unknown[]> {
  const slice = new TimeSlice(caller)
  const values: unknown[] = []
  for (const item of items) {
    try {
      const value = isLarger(item, itemBytesMax) ? tooLarge(itemBytesMax) : readText(item, caller)
      values.push(value instanceof Promise ? await value : value)
    } catch (error) {
      if (!(error instanceof StrictJsonError) || error.kind === 'syntax') throw error
      values.push(refusalOf(error))
    }
    if (slice.isOver) await slice.next()
  }
  return values
}

/** Whether a JSON text has more bytes than `bytesMax`, without the whitespace around it. */
function isLarger(text: Buffer, bytesMax: number): boolean {
  let start = 0
  let end = text.length
  while (end - start > bytesMax && isWhitespace(text[start])) start += 1
  while (end - start > bytesMax && isWhitespace(text[end - 1])) end -= 1
  return end - start > bytesMax
}

function isWhitespace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function tooLarge(bytesMax: number): ApiError {
  const message = `must not be larger than ${bytesMax} bytes`
  return new ApiError('invalid_request', {
    message: `The item is larger than ${bytesMax} bytes. Send less metadata.`,
    details: [{ path: '', message }],
  })
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}

function isSyntaxFault(error: unknown): boolean {
  return error instanceof StrictJsonError && error.kind === 'syntax'
}

/** Runs before the items are validated: a body can hold two million, which would take seconds. */
function tooMany({ name, itemsMax }: { name: string; itemsMax: number }): ApiError {
  const message = `must not have more than ${itemsMax} items`
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /${name} ${message}.`,
    details: [{ path: `/${name}`, message }],
  })
}

function addJsonParser(
  app: FastifyInstance,
  read: (body: Buffer, caller: SliceOwner) => unknown,
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    const caller = callerOf(request)
    const lease = app.bodyBudget.open(caller)
    if (lease instanceof ApiError) return done(lease)
    const finish = (error: Error | null, value?: unknown) => {
      lease.release()
      done(error, value)
    }
    collectBody(request, lease, (fault, body) => {
      if (fault) return finish(fault)
      try {
        const value = body.length === 0 ? undefined : read(body, caller)
        if (value instanceof Promise) {
          value.then(
            (json) => finish(null, json),
            (error) => finish(toError(error)),
          )
        } else {
          finish(null, value)
        }
      } catch (error) {
        finish(toError(error))
      }
    })
  })
}

/** The company that a body counts for. Callers without a key or session count by address. */
function callerOf({ key, viewer, clientAddress }: FastifyRequest): SliceOwner {
  return key?.companyId ?? viewer?.companyId ?? clientAddress
}

function refusalOf({ kind, path, message }: StrictJsonError): ApiError {
  if (kind === 'syntax') {
    return new ApiError('invalid_json', { message: `The body is not valid JSON: ${message}` })
  }
  return new ApiError('invalid_request', { message, details: [{ path, message }] })
}

function toError(error: unknown): Error {
  if (error instanceof StrictJsonError) return refusalOf(error)
  return error instanceof Error ? error : new Error(String(error))
}
