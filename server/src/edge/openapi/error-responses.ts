import { ERROR_CODES, type ErrorCode, errorMessageOf, statusOf } from '../../errors.ts'
import { ErrorBody } from '../schema/common.ts'
import type { SchemaComponents } from './components.ts'
import { TRACE_ID } from './examples.ts'
import { isObject, type JsonObject } from './json-object.ts'
import { headersOf } from './response-headers.ts'
import type { DocumentedRoute } from './route.ts'

const BODY_CODES = ['invalid_json', 'payload_too_large', 'unsupported_media_type'] as const
const CAPACITY_CODES = ['rate_limited', 'overloaded', 'unavailable'] as const

/** The names of the shared responses. */
const NAMES: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
}

/** References to the shared responses, one per status, with the codes that this route can return. */
export function errorResponses(route: DocumentedRoute): JsonObject {
  const byStatus = Map.groupBy(errorCodesOf(route), statusOf)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        $ref: `#/components/responses/${NAMES[status]}`,
        description: codes.map((code) => `\`${code}\``).join(', '),
      },
    ]),
  )
}

/** The shared responses that `used` codes need, for `components.responses`. */
export function sharedErrorResponses(
  used: ReadonlySet<ErrorCode>,
  isKeyed: boolean,
  components: SchemaComponents,
): JsonObject {
  const byStatus = Map.groupBy(
    ERROR_CODES.filter((code) => used.has(code)),
    statusOf,
  )
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      NAMES[status],
      {
        description: codes.map((code) => `\`${code}\`: ${errorMessageOf(code)}`).join('\n\n'),
        headers: headersOf(status, isKeyed),
        content: {
          'application/json': {
            schema: components.convert(ErrorBody),
            example: exampleOf(codes[0] ?? 'internal'),
          },
        },
      },
    ]),
  )
}

function exampleOf(code: ErrorCode): JsonObject {
  return { error: errorMessageOf(code), code, traceId: TRACE_ID }
}

/** What a route can return follows from its guard and its parameters. `schema.errors` adds the rest. */
export function errorCodesOf(route: DocumentedRoute): ErrorCode[] {
  const { method, url, schema, gate } = route
  const isChange = method !== 'GET'
  // Keys are refused before anything else is read.
  const isNeverRead = gate?.dashboardOnly === true
  const codes = new Set<ErrorCode>([
    ...(isNeverRead ? [] : (['invalid_request'] as const)),
    ...(isChange && !isNeverRead ? BODY_CODES : []),
    ...guardCodes(route),
    ...(url.includes(':') && !isNeverRead ? (['not_found'] as const) : []),
    ...(hasCursor(schema.querystring) ? (['invalid_cursor'] as const) : []),
    ...(schema.errors ?? []),
  ])
  return ERROR_CODES.filter((code) => codes.has(code))
}

function guardCodes({ method, gate, permission }: DocumentedRoute): readonly ErrorCode[] {
  if (gate) {
    return [
      'missing_api_key',
      'invalid_api_key',
      'expired_api_key',
      'ip_not_allowed',
      ...CAPACITY_CODES,
      ...(gate.scope || gate.permission ? (['insufficient_scope'] as const) : []),
      ...(gate.plan ? (['plan_required'] as const) : []),
      ...(gate.dashboardOnly ? (['dashboard_only'] as const) : []),
    ]
  }
  if (permission === undefined) return []
  return [
    ...CAPACITY_CODES,
    ...(permission === null ? [] : (['not_signed_in', 'insufficient_role'] as const)),
    ...(permission === null || permission === 'self.enroll'
      ? []
      : (['second_factor_required'] as const)),
    ...(method === 'GET' ? [] : (['cross_site'] as const)),
  ]
}

function hasCursor(querystring: unknown): boolean {
  const properties = isObject(querystring) ? querystring.properties : undefined
  return isObject(properties) && 'cursor' in properties
}
