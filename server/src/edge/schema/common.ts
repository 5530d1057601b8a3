import { type TSchema, Type } from 'typebox'
import { ERROR_CODES, type ErrorCode, statusOf } from '../../errors.ts'

/** Unknown fields are refused, never silently dropped. */
export const STRICT = { additionalProperties: false } as const

export const Uuid = Type.String({ format: 'uuid' })
export const DateTime = Type.String({ format: 'date-time' })

/** A filter value: longer than any field of an event, and short enough to store and forward. */
export const FilterText = Type.String({ maxLength: 1_024 })

export const TraceId = Type.String({ pattern: '^[0-9A-Fa-f]{32}$', maxLength: 32 })

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const ErrorDetails = Type.Array(
  Type.Object(
    {
      path: Type.String({ description: 'JSON pointer into the body, or a parameter.' }),
      message: Type.String(),
    },
    STRICT,
  ),
)

export const ErrorBody = Type.Object(
  {
    error: Type.String({ description: 'What went wrong, as a sentence.' }),
    code: Type.Enum(ERROR_CODES, { description: 'Stable; programs branch on it.' }),
    traceId: Type.String({ description: 'Quote it when you report a problem.' }),
    details: Type.Optional(ErrorDetails),
  },
  STRICT,
)

/** Errors that every route with a key can return. */
export const KEY_ERRORS = [
  'missing_api_key',
  'invalid_api_key',
  'expired_api_key',
  'ip_not_allowed',
  'rate_limited',
  'overloaded',
  'unavailable',
] as const satisfies readonly ErrorCode[]

/** Errors that every dashboard route can return. */
export const SESSION_ERRORS = [
  'not_signed_in',
  'insufficient_role',
  'rate_limited',
  // At least for an unknown query parameter.
  'invalid_request',
  'overloaded',
  'unavailable',
] as const satisfies readonly ErrorCode[]

/** Errors that every dashboard route that changes something can return. */
export const CHANGE_ERRORS = [
  ...SESSION_ERRORS,
  'cross_site',
  'invalid_json',
  'payload_too_large',
  'unsupported_media_type',
] as const satisfies readonly ErrorCode[]

/** Errors that every sign-in route can return. */
export const LOGIN_ERRORS = [
  'cross_site',
  'invalid_request',
  'invalid_json',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limited',
  'overloaded',
  'unavailable',
] as const satisfies readonly ErrorCode[]

/** Any body that is sent is parsed, even if the route doesn't use one. */
export const BODY_ERRORS = [
  'invalid_json',
  'payload_too_large',
  'unsupported_media_type',
] as const satisfies readonly ErrorCode[]

/** Lists the errors of a route as OpenAPI responses: one per status, with its codes in the description. */
export function errorResponses(...codes: readonly ErrorCode[]): Record<number, TSchema> {
  const byStatus = Map.groupBy(new Set(codes), statusOf)
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      { ...ErrorBody, description: group.map((code) => `\`${code}\``).join(', ') },
    ]),
  )
}
