import type { KeyScope } from '../principal.ts'

/** What a key can be limited to. Lists of permissions have this order. */
export const KEY_PERMISSIONS = [
  'events:write',
  'events:read',
  'exports',
  'webhooks',
  'audit',
] as const
export type KeyPermission = (typeof KEY_PERMISSIONS)[number]

/** Operations with another permission refuse every key of the scope. */
export const SCOPE_PERMISSIONS: Record<KeyScope, readonly KeyPermission[]> = {
  COMPANY: ['events:read', 'exports', 'webhooks', 'audit'],
  WORKSPACE: ['events:write', 'events:read', 'exports'],
}

/** What the key can do: what its scope allows, and of that only what it is limited to. Null: no limit. */
export function permissionsOf({
  scope,
  permissions,
}: {
  scope: KeyScope
  permissions: readonly KeyPermission[] | null
}): KeyPermission[] {
  return SCOPE_PERMISSIONS[scope].filter((permission) => permissions?.includes(permission) ?? true)
}

/** One bit per permission. Computed once per key, because every request checks it. */
export function maskOf(permissions: readonly KeyPermission[]): number {
  return permissions.reduce((mask, permission) => mask | BITS[permission], 0)
}

export function includesPermission(mask: number, permission: KeyPermission): boolean {
  return (mask & BITS[permission]) !== 0
}

const BITS: Record<KeyPermission, number> = {
  'events:write': 1,
  'events:read': 2,
  exports: 4,
  webhooks: 8,
  audit: 16,
}

/** Drops what this program doesn't know, so a newer program's permission grants nothing here. */
export function readPermissions(stored: readonly string[] | null): KeyPermission[] | null {
  return stored && KEY_PERMISSIONS.filter((permission) => stored.includes(permission))
}
