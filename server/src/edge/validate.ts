import type { FastifySchemaCompiler } from 'fastify'
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { ApiError, type ErrorDetail } from '../errors.ts'
import { escapePointer } from '../platform/json/json-fault.ts'
import { EXCLUSION_RULE } from './event/exclusion-text.ts'
import { sizeFaults } from './http/size-faults.ts'

const DETAILS_MAX = 20
/** Paths appear in responses, and a name can be as long as the body. */
const PATH_CHARS_MAX = 500

// TypeBox stops at the same number of errors. Its settings are global to the process.
Settings.Set({ maxErrors: DETAILS_MAX })

type Fault = { keyword: string; instancePath: string; params: object; message: string }

/**
 * Fastify's validator, implemented with TypeBox. Nothing in a body is coerced or dropped. Query parameters
 * are always text, so integer parameters are parsed, in plain decimal notation only, list parameters can
 * be repeated, and `metadata.ip=…` is a list in the object parameter `metadata`.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const getValidator = compileLater(schema)
  const isQuery = httpPart === 'querystring'
  const integers = isQuery ? namesOfType(schema, 'integer') : []
  const lists = isQuery ? namesOfType(schema, 'array') : []
  const objects = isQuery ? namesOfType(schema, 'object') : []
  const isTextOnly = integers.length === 0 && lists.length === 0 && objects.length === 0
  return (input: unknown) => {
    const value = isTextOnly ? input : readParameters(input, { integers, lists, objects })
    const faulty = isQuery ? faultyParameters(input, lists, objects) : []
    const validator = getValidator()
    if (faulty.length === 0 && validator.Check(value)) return { value }
    if (faulty.length > 0) return { error: validationError(faulty) }
    const faults = faultsOf(validator, value, httpPart)
    return { error: validationError(faults.map((fault) => asParameter(fault, objects))) }
  }
}

/** Creates a parser for values that Fastify doesn't validate. */
export function createParser<const T extends TSchema>(
  schema: T,
  part: 'body' | 'headers' = 'body',
): (value: unknown) => Static<T> | ApiError {
  const getValidator = compileLater(schema)
  return (value) => {
    const validator = getValidator()
    if (validator.Check(value)) return value
    return validationError(faultsOf(validator, value, part))
  }
}

/**
 * Compiles on first use: our formats aren't registered yet while modules load, and compiling the schemas of all
 * routes would take 30 ms of each start.
 */
function compileLater<const T extends TSchema>(schema: T): () => ReturnType<typeof Compile<T>> {
  let validator: ReturnType<typeof Compile<T>> | null = null
  return () => (validator ??= Compile(schema))
}

type FaultSource = { Type: () => TSchema; Errors: (value: unknown) => readonly Fault[] }

/**
 * Returns at most `DETAILS_MAX` errors. Size errors are reported first and alone, because TypeBox visits
 * the whole value to report errors and compares every item with every other.
 */
function faultsOf(validator: FaultSource, value: unknown, part = 'body'): ErrorDetail[] {
  const tooLarge = sizeFaults(validator.Type(), value, {
    faultsMax: DETAILS_MAX,
    unknownName: unknownIn(part),
  })
  if (tooLarge.length === 0) return describeFaults(validator.Errors(value), part)
  return tooLarge.map(({ path, message }) => ({ path: pathIn(part, path), message }))
}

function validationError(faults: readonly ErrorDetail[]): ApiError {
  const details = faults.map(({ path, message }) => ({ path: truncatePath(path), message }))
  return new ApiError('invalid_request', { details, message: summaryOf(details) })
}

function truncatePath(path: string): string {
  if (path.length <= PATH_CHARS_MAX) return path
  return `${path.slice(0, PATH_CHARS_MAX).toWellFormed()}…`
}

function unknownIn(part: string): string {
  return part === 'body' ? 'is not a known field' : 'is not a known parameter'
}

/** A JSON pointer into the body, or the name of a query parameter or header. */
function pathIn(part: string, pointer: string): string {
  return part === 'body' ? pointer : pointer.slice(1) || NAMELESS
}

function summaryOf([first, ...others]: readonly ErrorDetail[]): string {
  if (!first) return 'The request does not match the schema.'
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return `The request does not match the schema: ${first.path || 'the body'} ${first.message}${more}.`
}

function namesOfType(schema: object, type: string): string[] {
  if (!('properties' in schema) || typeof schema.properties !== 'object') return []
  return Object.entries(schema.properties ?? {})
    .filter(([, property]) => property?.type === type)
    .map(([name]) => name)
}

function readParameters(
  input: unknown,
  {
    integers,
    lists,
    objects,
  }: { integers: readonly string[]; lists: readonly string[]; objects: readonly string[] },
): unknown {
  if (typeof input !== 'object' || input === null) return input
  const read = (name: string, value: unknown) => {
    if (typeof value !== 'string') return value
    if (lists.includes(name)) return [value]
    const isInteger = integers.includes(name) && /^-?(0|[1-9]\d{0,14})$/.test(value)
    return isInteger ? Number(value) : value
  }
  const parameters: [string, unknown][] = []
  const members = new Map<string, [string, unknown][]>()
  for (const [name, value] of Object.entries(input)) {
    const object = objectOf(name, objects)
    if (object === null) parameters.push([name, read(name, value)])
    else members.set(object, [...(members.get(object) ?? []), memberOf(name, object, value)])
  }
  const nested = [...members].map(([name, of]) => [name, Object.fromEntries(of)] as const)
  return Object.fromEntries([...parameters, ...nested])
}

/** The object parameter that a name such as `metadata.ip` belongs to. */
function objectOf(name: string, objects: readonly string[]): string | null {
  return objects.find((object) => name.startsWith(`${object}.`)) ?? null
}

/** Names `metadata.ip` in an error as the client wrote it. */
function asParameter({ path, message }: ErrorDetail, objects: readonly string[]): ErrorDetail {
  const object = objects.find((name) => path.startsWith(`${name}/`))
  if (object === undefined) return { path, message }
  return { path: `${object}.${path.slice(object.length + 1)}`, message }
}

function memberOf(name: string, object: string, value: unknown): [string, unknown] {
  return [name.slice(object.length + 1), typeof value === 'string' ? [value] : value]
}

/**
 * Finds errors that schemas can't express or describe: `metadata` without a path, a repeated parameter, which
 * the query parser turns into a list, and U+0000, which the database would refuse with its own error.
 */
function faultyParameters(
  input: unknown,
  lists: readonly string[],
  objects: readonly string[],
): ErrorDetail[] {
  const details: ErrorDetail[] = []
  for (const [name, value] of Object.entries(input ?? {})) {
    const isList = lists.includes(name) || objectOf(name, objects) !== null
    if (objects.includes(name)) {
      details.push({
        path: name,
        message: `must be followed by a path, such as ${name}.ip=192.0.2.1`,
      })
    } else if (Array.isArray(value) && !isList) {
      details.push({ path: name, message: 'must appear only once' })
    } else if ([name, value].flat().some(hasNul)) {
      details.push({ path: name, message: 'must not contain the character U+0000' })
    }
  }
  return details.slice(0, DETAILS_MAX)
}

function hasNul(text: unknown): boolean {
  return typeof text === 'string' && text.includes('\0')
}

/** For a parameter without a name, as in `?=1`. */
const NAMELESS = '(no name)'

/** Describes errors for readers who don't know JSON Schema. */
function describeFaults(faults: readonly Fault[], part: string): ErrorDetail[] {
  const paths = new Set(faults.map(({ instancePath }) => instancePath))
  const details = faults.flatMap((fault) => detailsOf(fault, part, paths))
  const unique = new Map(details.map((detail) => [`${detail.path} ${detail.message}`, detail]))
  return [...unique.values()].slice(0, DETAILS_MAX)
}

/** `paths` contains the paths of all errors. */
function detailsOf(
  { keyword, instancePath, params, message }: Fault,
  part: string,
  paths: ReadonlySet<string>,
): ErrorDetail[] {
  const at = (name = '') =>
    pathIn(part, name === '' ? instancePath : `${instancePath}/${escapePointer(name)}`)
  const unknown = unknownIn(part)
  // TypeBox stops after a few errors, so the one that lists all unknown fields may be missing.
  if (keyword === 'boolean') return [{ path: at(), message: unknown }]
  // The same error is reported again by anyOf, more clearly.
  if (keyword === 'const') return []
  if (keyword === 'required' && 'requiredProperties' in params) {
    return namesIn(params.requiredProperties).map((name) => ({
      path: at(name),
      message: 'is required',
    }))
  }
  if (keyword === 'additionalProperties' && 'additionalProperties' in params) {
    // The schema of additional fields may allow the name, but not the value. Then that is another error.
    const isUnexplained = (name: string) => !paths.has(`${instancePath}/${escapePointer(name)}`)
    return namesIn(params.additionalProperties)
      .filter(isUnexplained)
      .map((name) => ({ path: at(name), message: unknown }))
  }
  if (keyword === 'enum' && 'allowedValues' in params) {
    return [{ path: at(), message: `must be one of ${namesIn(params.allowedValues).join(', ')}` }]
  }
  if (keyword === 'format' && 'format' in params) {
    return [{ path: at(), message: FORMAT_MESSAGES[String(params.format)] ?? message }]
  }
  if (keyword === 'pattern' && 'pattern' in params) {
    return [{ path: at(), message: PATTERN_MESSAGES[String(params.pattern)] ?? message }]
  }
  return [{ path: at(), message: boundMessage(keyword, params) ?? message }]
}

/** Returns null if the library's message is clear enough. */
function boundMessage(keyword: string, params: object): string | null {
  const limit = 'limit' in params ? Number(params.limit) : null
  if (keyword === 'minLength' && limit === 1) return 'must not be empty'
  if (keyword === 'minimum') return `must be at least ${limit}`
  if (keyword === 'maximum') return `must be at most ${limit}`
  if (keyword === 'type' && 'type' in params) return TYPE_MESSAGES[String(params.type)] ?? null
  return null
}

const TYPE_MESSAGES: Record<string, string> = {
  string: 'must be a string',
  number: 'must be a number',
  integer: 'must be an integer',
  boolean: 'must be true or false',
  array: 'must be an array',
  object: 'must be an object',
}

const PATTERN_MESSAGES: Record<string, string> = {
  '^[0-9A-Fa-f]{32}$': 'must be 32 hexadecimal digits',
  '^[0-9a-f]{64}$': 'must be 64 hexadecimal digits in lower case',
  '^[A-Za-z][A-Za-z0-9_+/-]*$': 'must be an IANA time zone, such as Europe/Berlin',
  [String.raw`^\S+$`]: 'must not contain whitespace',
  '^[^*]*[*]?$': 'may contain * only at its end',
  '^[ -~]*$': 'must contain only printable ASCII characters',
}

const FORMAT_MESSAGES: Record<string, string> = {
  uuid: 'must be a UUID',
  email: 'must be an email address',
  uri: 'must be an absolute URL',
  exclusion: EXCLUSION_RULE,
  'date-time':
    'must be an RFC 3339 date-time with an offset, such as 2026-03-01T12:00:00Z (in a query, write + as %2B)',
}

function namesIn(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
