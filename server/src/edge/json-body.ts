import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { StrictJsonError } from '../platform/json-fault.ts'
import { type SlicedItems, sliceItems } from '../platform/json-items.ts'
import type { JsonReaderOptions } from '../platform/json-reader.ts'
import {
  JSON_AT_ONCE_BYTES_MAX,
  parseStrictJson,
  readLargeJson,
  refuseInvalidUtf8,
} from '../platform/strict-json.ts'
import {
  runAtOnce,
  runInSlices,
  runShort,
  type SliceOwner,
  TimeSlice,
} from '../platform/time-slice.ts'
import type { BodyBudget } from './body-budget.ts'
import { collectBody } from './collect-body.ts'
import { companyOf } from './request-slots.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Shared by every route of the node. */
    bodyBudget: BodyBudget
    /** How long the body of a request without a key or session can take to arrive. */
    anonymousBodyMs: number
  }
}

/** Reading a body of this size is too cheap to measure. */
const TINY_BYTES_MAX = 1_024

/** An event's metadata is the only field that can have any shape and size. */
const READER: JsonReaderOptions = { canonicalMember: 'metadata', keysMax: 1_000 }

/**
 * Accepts only JSON bodies, and parses them strictly: numbers that a double can't represent, duplicate keys
 * and invalid text are refused. An empty body counts as no body whatever its content type, so that a POST
 * without a body can have the header.
 *
 * Small bodies are parsed in one go, large ones in slices. The time counts against the caller, which has to
 * wait for its turn if it uses too much. In a large body, `metadata` becomes a `CanonicalJson`.
 */
export function parseJsonBodies(
  app: FastifyInstance,
  { bodyBudget, anonymousBodyMs }: { bodyBudget: BodyBudget; anonymousBodyMs: number },
): void {
  app.decorate('bodyBudget', bodyBudget)
  app.decorate('anonymousBodyMs', anonymousBodyMs)
  addJsonParser(app, readText)
}

/**
 * The same for a route whose body is `{ "<name>": [ … ] }`. An item that is larger than `itemBytesMax` or
 * can't be stored becomes an `ApiError` in its place, and the others are parsed as usual. Everything around
 * the items is parsed strictly. `charge` is called with the body's size while it arrives, and with the number
 * of items before any of them is parsed. It can refuse the body each time.
 */
export function parseJsonItemBodies(
  app: FastifyInstance,
  {
    name,
    itemsMax,
    itemBytesMax,
    charge,
  }: {
    name: string
    itemsMax: number
    itemBytesMax: number
    charge: (request: FastifyRequest, size: BodySize) => ApiError | null
  },
): void {
  const read = async (body: Buffer, caller: SliceOwner, request: FastifyRequest) => {
    const refusal = charge(request, { items: 0, bytes: body.length })
    if (refusal) throw refusal
    const slicing = sliceItems(body, { name, itemsMax })
    const isSmall = body.length <= JSON_AT_ONCE_BYTES_MAX
    const sliced = isSmall ? runAtOnce(slicing) : await runInSlices(slicing, caller)
    if (!sliced) throw tooMany({ name, itemsMax })
    const lateRefusal = charge(request, { items: sliced.count, bytes: body.length })
    if (lateRefusal) throw lateRefusal
    return await readSliced(body, sliced, { name, itemBytesMax, caller })
  }
  addJsonParser(app, read, charge)
}

/** `items` is zero until the number is known. */
type BodySize = { items: number; bytes: number }

type ItemOptions = { name: string; itemBytesMax: number; caller: SliceOwner }

/** If the body isn't valid JSON, reports the first error in it, without parsing the body twice. */
async function readSliced(
  body: Buffer,
  { items, frame, arrayStart }: SlicedItems,
  options: ItemOptions,
): Promise<unknown> {
  if (items.length === 0) return await readText(frame, options.caller)
  refuseInvalidUtf8(body)
  let around: unknown
  let faultBehind: StrictJsonError | null = null
  try {
    const read = readText(frame, options.caller)
    // Await only a promise, so that a small body is parsed synchronously.
    around = read instanceof Promise ? await read : read
  } catch (error) {
    if (!isSyntaxFault(error) || error.offset < arrayStart) throw error
    faultBehind = error.movedBy(body.length - frame.length)
  }
  const { values, firstFault } = await readItems(body, items, options)
  if (faultBehind) throw firstFault ?? faultBehind
  return { ...objectOf(around), [options.name]: values }
}

/** Returns a promise only for large texts. Most bodies are small and are parsed synchronously. */
function readText(text: Buffer, caller: SliceOwner): unknown {
  if (text.length <= JSON_AT_ONCE_BYTES_MAX) return parseStrictJson(text)
  return readLargeJson(text, READER, caller)
}

async function readItems(
  body: Buffer,
  items: readonly Buffer[],
  { name, itemBytesMax, caller }: ItemOptions,
): Promise<{ values: unknown[]; firstFault: StrictJsonError | null }> {
  const slice = new TimeSlice(caller)
  const values: unknown[] = []
  let firstFault: StrictJsonError | null = null
  for (const [index, item] of items.entries()) {
    try {
      const value = isLarger(item, itemBytesMax) ? tooLarge(itemBytesMax) : readText(item, caller)
      values.push(value instanceof Promise ? await value : value)
    } catch (error) {
      if (!(error instanceof StrictJsonError)) throw error
      if (error.kind === 'syntax') {
        throw firstFault ?? (await faultInBody(error, { body, items, item, name, caller }))
      }
      firstFault ??= error.below(`/${name}/${index}`)
      values.push(refusalOf(error))
    }
    if (slice.isOver) await slice.next()
  }
  return { values, firstFault }
}

/**
 * Returns the syntax error of an item with its offset in the body. Parses the item again with the text around
 * it, because a truncated item is followed by a comma or bracket, not by the end of the text.
 */
async function faultInBody(
  error: StrictJsonError,
  {
    body,
    items,
    item,
    name,
    caller,
  }: Pick<ItemOptions, 'name' | 'caller'> & {
    body: Buffer
    items: readonly Buffer[]
    item: Buffer
  },
): Promise<StrictJsonError> {
  const start = item.byteOffset - body.byteOffset
  const isFirst = item === items[0]
  const opening = Buffer.from(`{${JSON.stringify(name)}:[${isFirst ? '' : '0,'}`)
  const inContext = Buffer.concat([opening, body.subarray(start, start + item.length + 1)])
  try {
    await readText(inContext, caller)
  } catch (fault) {
    if (isSyntaxFault(fault)) return fault.movedBy(start - opening.length)
  }
  return error.movedBy(start)
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

function isSyntaxFault(error: unknown): error is StrictJsonError {
  return error instanceof StrictJsonError && error.kind === 'syntax'
}

/** Thrown before the items are validated: a body can have two million, which would take seconds. */
function tooMany({ name, itemsMax }: { name: string; itemsMax: number }): ApiError {
  const message = `must not have more than ${itemsMax} items`
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /${name} ${message}.`,
    details: [{ path: `/${name}`, message }],
  })
}

function addJsonParser(
  app: FastifyInstance,
  read: (body: Buffer, caller: SliceOwner, request: FastifyRequest) => unknown,
  charge: (request: FastifyRequest, size: BodySize) => ApiError | null = () => null,
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
    const timeoutMs = companyOf(request) === null ? app.anonymousBodyMs : null
    const readInTurn = (body: Buffer): unknown => {
      const isTiny = body.length <= TINY_BYTES_MAX
      // Larger bodies wait for their turns while they are parsed.
      if (isTiny || body.length > JSON_AT_ONCE_BYTES_MAX) return read(body, caller, request)
      return runShort(caller, () => read(body, caller, request))
    }
    const chargeBytes = (bytes: number) => charge(request, { items: 0, bytes })
    collectBody(request, { lease, timeoutMs, charge: chargeBytes }, (fault, body) => {
      if (fault) return finish(fault)
      try {
        const value = body.length === 0 ? undefined : readInTurn(body)
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

/** The company that a body counts toward. Callers without a key or session count by address. */
function callerOf(request: FastifyRequest): SliceOwner {
  return companyOf(request) ?? request.clientAddress
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
