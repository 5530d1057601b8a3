import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { JsonFault, JsonResult } from '../../platform/json/json-fault.ts'
import { type SplitItems, splitItems } from '../../platform/json/json-items.ts'
import type { JsonReaderOptions } from '../../platform/json/json-reader.ts'
import {
  findInvalidUtf8,
  JSON_AT_ONCE_BYTES_MAX,
  readJson,
} from '../../platform/json/strict-json.ts'
import {
  runAtOnce,
  runInSlices,
  runShort,
  type SliceOwner,
  TimeSlice,
} from '../../platform/scheduling/time-slice.ts'
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

const JSON_TYPE = 'application/json'
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
  addJsonParser(app, readBody)
}

/**
 * Like `parseJsonBodies`, for a route whose body is `{ "<name>": [ … ] }`. An item that is larger than `itemBytesMax` or
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
    const splitting = splitItems(body, { name, itemsMax })
    const isSmall = body.length <= JSON_AT_ONCE_BYTES_MAX
    const split = isSmall ? runAtOnce(splitting) : await runInSlices(splitting, caller)
    if (!split) throw tooManyItemsError({ name, itemsMax })
    const lateRefusal = charge(request, { items: split.count, bytes: body.length })
    if (lateRefusal) throw lateRefusal
    refuseInvalidUtf8(body)
    return await readItems(split, { name, itemBytesMax, caller })
  }
  addJsonParser(app, read, charge)
}

/** `items` is zero until the number is known. */
type BodySize = { items: number; bytes: number }

/** Returns a promise only for large bodies. Most bodies are small and are parsed synchronously. */
function readBody(bytes: Buffer, caller: SliceOwner): unknown {
  refuseInvalidUtf8(bytes)
  const read = readJson({ bytes, start: 0, end: bytes.length }, { ...READER, owner: caller })
  return read instanceof Promise ? read.then(valueOf) : valueOf(read)
}

function refuseInvalidUtf8(body: Buffer): void {
  const fault = findInvalidUtf8(body)
  if (fault) throw errorOfFault(fault)
}

function valueOf({ value, fault }: JsonResult): unknown {
  if (fault) throw errorOfFault(fault)
  return value
}

/** If the body isn't valid JSON, reports the first fault in it, without parsing the body twice. */
async function readItems(
  { items, frame }: SplitItems,
  { name, itemBytesMax, caller }: { name: string; itemBytesMax: number; caller: SliceOwner },
): Promise<unknown> {
  const options = { ...READER, owner: caller }
  const reading = readJson(frame, options)
  // Await only a promise, so that a small body is parsed synchronously.
  const around = reading instanceof Promise ? await reading : reading
  // A syntax error behind the items counts only if they have no fault.
  const isBehind = around.fault?.kind === 'syntax' && around.fault.offset >= (frame.gap?.at ?? 0)
  if (around.fault && !isBehind) throw errorOfFault(around.fault)
  const slice = new TimeSlice(caller)
  const values: unknown[] = []
  let firstFault: JsonFault | null = null
  for (const [index, item] of items.entries()) {
    if (item.end - item.start > itemBytesMax) {
      values.push(tooLargeError(itemBytesMax))
      continue
    }
    const read = readJson(item, options)
    const { value, fault } = read instanceof Promise ? await read : read
    if (fault?.kind === 'syntax') throw errorOfFault(firstFault ?? fault)
    if (fault) firstFault ??= { ...fault, path: `/${name}/${index}${fault.path}` }
    values.push(fault ? errorOfFault(fault) : value)
    if (slice.isOver) await slice.next()
  }
  if (around.fault) throw errorOfFault(firstFault ?? around.fault)
  return items.length === 0 ? around.value : { ...objectOf(around.value), [name]: values }
}

function tooLargeError(bytesMax: number): ApiError {
  const message = `must not be larger than ${bytesMax} bytes`
  return new ApiError('invalid_request', {
    message: `The item is larger than ${bytesMax} bytes. Send less metadata.`,
    details: [{ path: '', message }],
  })
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}

/** Thrown before the items are validated: a body can have two million, which would take seconds. */
function tooManyItemsError({ name, itemsMax }: { name: string; itemsMax: number }): ApiError {
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
  app.addContentTypeParser(JSON_TYPE, (request, _payload, done) => {
    const refusal = encodingRefusal(request)
    if (refusal) return done(refusal)
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

/** Bodies are plain UTF-8. Read as such, one that says otherwise could mean something else. */
function encodingRefusal({ headers }: FastifyRequest): ApiError | null {
  const { 'content-encoding': encoding, 'content-type': type = '' } = headers
  if (encoding !== undefined && !/^(identity)?$/i.test(encoding)) {
    return new ApiError('unsupported_media_type', {
      message: 'Compressed bodies are not supported. Send the body without Content-Encoding.',
    })
  }
  if (type.length === JSON_TYPE.length) return null
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(type)?.[1] ?? 'utf-8'
  // ASCII is a subset of UTF-8.
  if (/^(utf-?8|us-ascii)$/i.test(charset)) return null
  return new ApiError('unsupported_media_type', {
    message: 'The charset of the body is not UTF-8. Send the body as UTF-8.',
  })
}

/** The company that a body counts toward. Callers without a key or session count by address. */
function callerOf(request: FastifyRequest): SliceOwner {
  return companyOf(request) ?? request.clientAddress
}

function errorOfFault({ kind, path, message }: JsonFault): ApiError {
  if (kind === 'syntax') {
    return new ApiError('invalid_json', { message: `The body is not valid JSON: ${message}` })
  }
  return new ApiError('invalid_request', { message, details: [{ path, message }] })
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
