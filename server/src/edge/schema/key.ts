import { Type } from 'typebox'
import { KEY_SCOPES } from '../../tenancy/principal.ts'
import { DateTime, Nullable, STRICT } from './common.ts'

export const KeyStatus = Type.Object(
  {
    id: Type.String(),
    prefix: Type.String({ description: 'The start of the key, enough to recognise it.' }),
    scope: Type.Enum([...KEY_SCOPES]),
    status: Type.Enum(['ACTIVE', 'ROTATING'], {
      description: 'ROTATING: replaced, still valid in its grace time.',
    }),
    expiresAt: Nullable(DateTime),
    lastUsedAt: Nullable(DateTime),
    lastUsedIp: Nullable(Type.String()),
    lastUsedEndpoint: Nullable(Type.String()),
    healthScore: Type.Integer({ minimum: 0, maximum: 100 }),
  },
  STRICT,
)
