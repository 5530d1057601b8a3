import { Type } from 'typebox'
import { Name } from '../../dashboard/name-input.ts'
import { ERROR_CODES } from '../../../errors.ts'
import { KEY_STATUSES } from '../../../tenancy/key-status.ts'
import { KEY_SCOPES } from '../../../tenancy/principal.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'

export const GRACE_HOURS_MAX = 24

export const KeyRecord = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    prefix: Type.String({ description: 'The start of the key, enough to recognise it.' }),
    scope: Type.Enum([...KEY_SCOPES]),
    workspaceId: Nullable({ ...Uuid, description: 'Null for company scope.' }),
    status: Type.Enum([...KEY_STATUSES], {
      description: 'ROTATING: replaced, and works until `graceUntil`.',
    }),
    createdAt: DateTime,
    expiresAt: Nullable(DateTime),
    graceUntil: Nullable(DateTime),
    revokedAt: Nullable(DateTime),
    lastUsedAt: Nullable(DateTime),
    lastUsedIp: Nullable(Type.String()),
    lastUsedEndpoint: Nullable(Type.String()),
    health: Nullable(
      Type.Object(
        {
          score: Type.Integer({ minimum: 0, maximum: 100 }),
          deductions: Type.Array(
            Type.Object(
              { points: Type.Integer(), reason: Type.String({ description: 'A sentence.' }) },
              STRICT,
            ),
          ),
        },
        { ...STRICT, description: 'Null for a key that no longer works.' },
      ),
    ),
  },
  STRICT,
)

export const KeyPage = Type.Object(
  { data: Type.Array(KeyRecord), nextCursor: Nullable(Type.String()) },
  STRICT,
)
export const KeyQuery = Type.Object(
  {
    workspaceId: Type.Optional(Uuid),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    cursor: Type.Optional(Type.String({ maxLength: 256 })),
  },
  STRICT,
)
export const KeyParams = Type.Object({ keyId: Type.String() })

const Expiry = Nullable({ ...DateTime, description: 'In the future; null: never.' })

export const KeyInput = Type.Object(
  {
    name: Name,
    scope: Type.Enum([...KEY_SCOPES]),
    workspaceId: Type.Optional({ ...Uuid, description: 'For workspace scope, and only then.' }),
    expiresAt: Type.Optional(Expiry),
  },
  STRICT,
)

export const RotationInput = Type.Object(
  {
    graceHours: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: GRACE_HOURS_MAX,
        description: 'How long the old key works on. 24 by default; 0: it ends at once.',
      }),
    ),
    expiresAt: Type.Optional({
      ...Expiry,
      description: 'Of the new key. By default it lives as long as the old one was meant to.',
    }),
  },
  STRICT,
)

/** For the only responses that contain a key's text. */
export const NewKey = Type.Object(
  {
    key: KeyRecord,
    secret: Type.String({ description: 'The whole key. It is never shown again.' }),
  },
  STRICT,
)

export const keyPreflightInput = (operations: readonly string[]) =>
  Type.Object(
    {
      keyId: Uuid,
      operation: Type.Enum([...operations], {
        description: 'The `operationId` of an operation of the API.',
      }),
      address: Type.Optional(
        Type.String({ maxLength: 64, description: 'An IP address; yours by default.' }),
      ),
    },
    STRICT,
  )

export const KeyPreflight = Type.Object(
  {
    allowed: Type.Boolean(),
    operation: Type.String(),
    address: Type.String(),
    refusal: Nullable(
      Type.Object(
        {
          gate: Type.String(),
          status: Type.Integer(),
          code: Type.Enum(ERROR_CODES),
          message: Type.String(),
        },
        { ...STRICT, description: 'What a call would be answered: the first gate that says no.' },
      ),
    ),
    gates: Type.Array(
      Type.Object({ name: Type.String(), ok: Type.Boolean(), message: Type.String() }, STRICT),
      { description: 'In the order in which a call meets them, each judged by itself.' },
    ),
    rateLimit: Type.String({ description: 'How often such calls may be made, as a sentence.' }),
  },
  STRICT,
)
