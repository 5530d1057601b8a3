import { Type } from 'typebox'
import { Name } from '../../name-input.ts'
import { KEY_PERMISSIONS } from '../../../tenancy/key/key-permissions.ts'
import { KEY_STATUSES } from '../../../tenancy/key/key-status.ts'
import { DateTime, ErrorCodeText, NextCursor, Nullable, STRICT, Uuid } from '../common.ts'
import { KEY_PREFIX, KeyPermissions, KeyPermissionText, KeyScopeText, LAST_USE } from '../key.ts'
import { named } from '../named.ts'

export const GRACE_HOURS_MAX = 24

export const KeyRecord = named(
  'Key',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the key.' },
      name: Type.String({ description: 'The name of the key.' }),
      prefix: Type.String({ description: KEY_PREFIX }),
      scope: KeyScopeText,
      workspaceId: Nullable({
        ...Uuid,
        description: 'The workspace of the key. Null for a company key.',
      }),
      permissions: KeyPermissions,
      status: Type.Enum([...KEY_STATUSES], {
        description: 'ROTATING: the key was replaced and works until `graceUntil`.',
      }),
      createdAt: { ...DateTime, description: 'When the key was created.' },
      expiresAt: Nullable({
        ...DateTime,
        description: 'When the key expires. Null if it never does.',
      }),
      graceUntil: Nullable({ ...DateTime, description: 'When a replaced key stops working.' }),
      revokedAt: Nullable({ ...DateTime, description: 'When the key was revoked.' }),
      ...LAST_USE,
      health: Nullable(
        Type.Object(
          {
            score: Type.Integer({ minimum: 0, maximum: 100, description: 'From 0 to 100.' }),
            deductions: Type.Array(
              Type.Object(
                {
                  points: Type.Integer({ description: 'The points deducted.' }),
                  reason: Type.String({ description: 'A human-readable reason.' }),
                },
                STRICT,
              ),
              { description: 'Why the score is below 100.' },
            ),
          },
          { ...STRICT, description: 'The health of the key. Null if the key no longer works.' },
        ),
      ),
    },
    { ...STRICT, description: 'An API key, without its secret.' },
  ),
)

export const KeyPage = Type.Object(
  { data: Type.Array(KeyRecord, { description: 'The keys.' }), nextCursor: NextCursor },
  { ...STRICT, description: 'A page of keys.' },
)
export const KeyQuery = Type.Object(
  {
    workspaceId: Type.Optional({ ...Uuid, description: 'Only keys of this workspace.' }),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        description: 'The maximum number of keys per page.',
      }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 256, description: 'The `nextCursor` of the previous page.' }),
    ),
  },
  STRICT,
)
export const KeyParams = Type.Object({ keyId: Type.String() })

const Expiry = Nullable({
  ...DateTime,
  description: 'When the key expires, in the future. Null for never.',
})

export const KeyInput = Type.Object(
  {
    name: { ...Name, description: 'The name of the key.' },
    scope: KeyScopeText,
    workspaceId: Type.Optional({
      ...Uuid,
      description: 'The workspace of a workspace key. Not allowed for a company key.',
    }),
    permissions: Type.Optional(
      Type.Array(KeyPermissionText, {
        minItems: 1,
        maxItems: KEY_PERMISSIONS.length,
        uniqueItems: true,
        description:
          "What to limit the key to, which can't be changed later. Default: everything that its scope allows.",
      }),
    ),
    expiresAt: Type.Optional(Expiry),
  },
  { ...STRICT, description: 'The settings of the new key.' },
)

export const RotationInput = Type.Object(
  {
    graceHours: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: GRACE_HOURS_MAX,
        description:
          'How many hours the old key keeps working. Default: 24. 0 ends it immediately.',
      }),
    ),
    expiresAt: Type.Optional({
      ...Expiry,
      description: 'When the new key expires. By default, it has the lifetime of the old key.',
    }),
  },
  { ...STRICT, description: 'How to rotate the key.' },
)

/** For the only responses that contain a key's text. */
export const NewKey = named(
  'NewKey',
  Type.Object(
    {
      key: KeyRecord,
      secret: Type.String({
        description: 'The complete key. Store it now: it is not shown again.',
      }),
    },
    { ...STRICT, description: 'The new key. It works immediately.' },
  ),
)

export const keyPreflightInput = (operations: readonly string[]) =>
  Type.Object(
    {
      keyId: { ...Uuid, description: 'The ID of the key.' },
      operation: Type.Enum([...operations], {
        description: 'The `operationId` of an API operation.',
      }),
      address: Type.Optional(
        Type.String({
          maxLength: 64,
          description: 'The IP address of the caller. Default: the address of this request.',
        }),
      ),
    },
    { ...STRICT, description: 'Which request to check.' },
  )

export const KeyPreflight = Type.Object(
  {
    allowed: Type.Boolean({ description: 'Whether the request would be allowed.' }),
    operation: Type.String({ description: 'The `operationId` that was checked.' }),
    address: Type.String({ description: 'The IP address that was checked.' }),
    refusal: Nullable(
      Type.Object(
        {
          gate: Type.String({ description: 'The check that fails.' }),
          status: Type.Integer({ description: 'The HTTP status of the response.' }),
          code: ErrorCodeText,
          message: Type.String({ description: 'A human-readable error message.' }),
        },
        { ...STRICT, description: 'The error response. Null if the request would be allowed.' },
      ),
    ),
    gates: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: 'The name of the check.' }),
          ok: Type.Boolean({ description: 'Whether it passes.' }),
          message: Type.String({ description: 'A human-readable reason.' }),
        },
        STRICT,
      ),
      { description: 'All checks, in the order in which they apply.' },
    ),
    rateLimit: Type.String({ description: 'A human-readable description of the rate limit.' }),
  },
  { ...STRICT, description: 'Whether the key could make the request, and why.' },
)
