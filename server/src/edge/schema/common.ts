import { type TSchema, Type } from 'typebox'
import { ERROR_CODES } from '../../errors.ts'
import { named } from './named.ts'

/** Unknown fields are refused, never silently dropped. */
export const STRICT = { additionalProperties: false } as const

export const Uuid = Type.String({ format: 'uuid' })
export const DateTime = Type.String({ format: 'date-time' })

/** A filter value: longer than any field of an event, and short enough to store and forward. */
export const FilterText = Type.String({ maxLength: 1_024 })

export const TraceId = Type.String({ pattern: '^[0-9A-Fa-f]{32}$', maxLength: 32 })

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** `from` and `to`, wherever they are optional. */
export const TIME_RANGE = {
  from: Type.Optional({ ...DateTime, description: 'Start of the time range, inclusive.' }),
  to: Type.Optional({ ...DateTime, description: 'End of the time range, exclusive.' }),
}

export const RECEIVED_RANGE = {
  receivedFrom: Type.Optional({
    ...DateTime,
    description: 'Only events that Annals received at this time or later.',
  }),
  receivedTo: Type.Optional({
    ...DateTime,
    description: 'Only events that Annals received before this time.',
  }),
}

export const TIME_ZONE = {
  timeZone: Type.Optional(
    Type.String({
      maxLength: 64,
      pattern: '^[A-Za-z][A-Za-z0-9_+/-]*$',
      description:
        'An IANA time zone, such as `Europe/Berlin`. Bars of days start at its midnight. Default: UTC.',
    }),
  ),
}

export const CursorQuery = Type.String({
  maxLength: 512,
  description: 'The `nextCursor` of the previous page. Keep the other parameters the same.',
})

export const NextCursor = Nullable(
  Type.String({
    description: 'Pass it as `cursor` to get the next page. Null on the last page.',
  }),
)

const ErrorDetail = named(
  'ErrorDetail',
  Type.Object(
    {
      path: Type.String({
        description: 'A JSON pointer into the body, or the name of a parameter or header.',
      }),
      message: Type.String({ description: 'What is wrong with the value.' }),
    },
    { ...STRICT, description: 'One problem in the request.' },
  ),
)

export const ErrorDetails = Type.Array(ErrorDetail, {
  description: 'The problems in the request, at most 20.',
})

export const ErrorCodeText = named(
  'ErrorCode',
  Type.Enum(ERROR_CODES, {
    description: 'Identifies the error. Codes are stable; new ones can be added.',
  }),
)

export const ErrorBody = named(
  'Error',
  Type.Object(
    {
      error: Type.String({
        description: 'A human-readable message: what happened and what to do.',
      }),
      code: ErrorCodeText,
      traceId: Type.String({
        description: 'The trace ID of the request. Quote it when you report a problem.',
      }),
      details: Type.Optional(ErrorDetails),
    },
    { ...STRICT, description: 'The body of every error response.' },
  ),
)

/** A path can contain any text. Text that isn't an id of the caller's gets a 404. */
export const WorkspaceParams = Type.Object({ workspaceId: Type.String() })
