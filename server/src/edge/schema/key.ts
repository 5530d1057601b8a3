import { Type } from 'typebox'
import { KEY_PERMISSIONS } from '../../tenancy/key/key-permissions.ts'
import { PLANS } from '../../tenancy/plans.ts'
import { KEY_SCOPES } from '../../tenancy/principal.ts'
import { DateTime, Nullable, STRICT, Uuid } from './common.ts'
import { named } from './named.ts'

export const KeyScopeText = named(
  'KeyScope',
  Type.Enum([...KEY_SCOPES], {
    description: 'A company key covers all workspaces of the company, a workspace key one of them.',
  }),
)

export const KeyPermissionText = named(
  'KeyPermission',
  Type.Enum([...KEY_PERMISSIONS], {
    description:
      "`events:write`: send events. `events:read`: query events, read the feed and list event types. `exports`: create, list and download exports. `webhooks`: create, list and change webhooks. `audit`: use the system workspace, together with the permission of the operation. Company keys can't use `events:write`, and workspace keys can't use `webhooks` or `audit`.",
  }),
)

export const KeyPermissions = Type.Array(KeyPermissionText, {
  description: 'What the key can do, within its scope.',
})

/** The fields about a key's last use, here and in the dashboard. */
export const LAST_USE = {
  lastUsedAt: Nullable({
    ...DateTime,
    description: 'When the key was last used. Updated at most once per minute.',
  }),
  lastUsedIp: Nullable(Type.String({ description: 'The IP address of the last use.' })),
  lastUsedEndpoint: Nullable(
    Type.String({ description: 'The endpoint of the last use, such as `POST /v1/events`.' }),
  ),
}

export const KEY_PREFIX = 'The start of the key, which identifies it.'

export const KeyStatusRecord = named(
  'KeyStatus',
  Type.Object(
    {
      id: Type.String({ description: 'The ID of the key.' }),
      prefix: Type.String({ description: KEY_PREFIX }),
      scope: KeyScopeText,
      status: Type.Enum(['ACTIVE', 'ROTATING'], {
        description: 'ROTATING: the key was replaced and still works during its grace period.',
      }),
      expiresAt: Nullable({
        ...DateTime,
        description: 'When the key expires. Null if it never does.',
      }),
      ...LAST_USE,
      healthScore: Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'From 0 to 100. The dashboard lists the reasons for each deduction.',
      }),
      companyId: { ...Uuid, description: 'The company that the key belongs to.' },
      workspaceId: Nullable({
        ...Uuid,
        description: 'The workspace of a workspace key. Null for a company key.',
      }),
      plan: Type.Enum([...PLANS], { description: "The company's plan." }),
      permissions: KeyPermissions,
    },
    { ...STRICT, description: 'The status of the key that sent the request.' },
  ),
)
