import type { Key, KeyScope } from './keys.ts'

export type Permission = Key['permissions'][number]

type PermissionText = {
  label: string
  description: string
  /** The only scope that can have it, if not both. */
  scope?: KeyScope
}

/** In the order of the API. A new permission without a text fails the build. */
const TEXTS: Record<Permission, PermissionText> = {
  'events:write': {
    label: 'Send events',
    description: 'Sends events to the workspace, one at a time or in batches.',
    scope: 'WORKSPACE',
  },
  'events:read': {
    label: 'Read events',
    description: 'Queries events, reads the feed and lists event types.',
  },
  exports: { label: 'Exports', description: 'Creates, lists and downloads exports.' },
  webhooks: {
    label: 'Webhooks',
    description: 'Creates, lists, changes and deletes webhooks.',
    scope: 'COMPANY',
  },
  audit: {
    label: 'Audit log',
    description: 'Extends the permissions above to the company’s audit log.',
    scope: 'COMPANY',
  },
}

const PERMISSIONS = Object.keys(TEXTS) as Permission[] // The record has exactly these keys.

export const PERMISSION_OPTIONS = PERMISSIONS.map((name) => ({ name, ...TEXTS[name] }))

export function isAllowedFor(scope: KeyScope, permission: Permission): boolean {
  return (TEXTS[permission].scope ?? scope) === scope
}

export const PERMISSION_PRESETS = [
  { value: 'all', label: 'All permissions' },
  { value: 'write', label: 'Write only' },
  { value: 'read', label: 'Read only' },
  { value: 'custom', label: 'Custom' },
] as const
type Preset = (typeof PERMISSION_PRESETS)[number]['value']

/** What a new key is limited to. */
export type Limit = { preset: Preset; custom: readonly Permission[] }

export const NO_LIMIT: Limit = { preset: 'all', custom: [] }

/** The permissions of a limited key. Null: everything that the scope allows. */
export function permissionsFor(scope: KeyScope, { preset, custom }: Limit): Permission[] | null {
  if (preset === 'all') return null
  if (preset === 'write') return ['events:write']
  if (preset === 'read') return ['events:read']
  return PERMISSIONS.filter((name) => custom.includes(name) && isAllowedFor(scope, name))
}

/** What a key can do, in a few words. */
export function permissionText({ scope, permissions }: Pick<Key, 'scope' | 'permissions'>): string {
  const isUnlimited = PERMISSIONS.every(
    (name) => permissions.includes(name) || !isAllowedFor(scope, name),
  )
  if (isUnlimited) return 'All permissions'
  const [first, ...others] = permissions
  if (others.length === 0 && first === 'events:write') return 'Write only'
  if (others.length === 0 && first === 'events:read') return 'Read only'
  const text = permissions.map((name) => TEXTS[name].label.toLowerCase()).join(', ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}
