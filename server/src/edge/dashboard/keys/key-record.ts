import { ApiError } from '../../../errors.ts'
import { type KeyId, parseId } from '../../../platform/id.ts'
import { parseRfc3339 } from '../../../platform/time/rfc3339.ts'
import type { CompanyKey } from '../../../tenancy/key/company-key-store.ts'
import { healthOf } from '../../../tenancy/key/key-health.ts'
import { permissionsOf } from '../../../tenancy/key/key-permissions.ts'
import { keyStatusAt } from '../../../tenancy/key/key-status.ts'
import { prefixOf } from '../../../tenancy/key/key-text.ts'
import { callsToday, latestUse } from '../../key-use.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

export function keyRecord(
  key: CompanyKey,
  { keyUse }: Pick<DashboardDeps, 'keyUse'>,
  { companyHasAllowlist, nowMs }: { companyHasAllowlist: boolean; nowMs: number },
) {
  const { id, name, scope, workspaceId, createdAt, expiresAt } = key
  const use = latestUse(key.use, keyUse.peek(id))
  const status = keyStatusAt(key, nowMs)
  const condition = {
    createdAt,
    expiresAt,
    graceUntil: key.graceUntil,
    lastUsedAt: use?.usedAt ?? null,
    ...callsToday(key.use, nowMs),
    companyHasAllowlist,
  }
  const works = status === 'ACTIVE' || status === 'ROTATING'
  return {
    id,
    name,
    prefix: prefixOf(key.kid),
    scope,
    workspaceId,
    permissions: permissionsOf(key),
    status,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    graceUntil: key.graceUntil?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
    lastUsedAt: use?.usedAt.toISOString() ?? null,
    lastUsedIp: use?.usedIp ?? null,
    lastUsedEndpoint: use?.usedEndpoint ?? null,
    health: works ? healthOf(condition, nowMs) : null,
  }
}

/** A path can contain any text. Text that isn't an id gets a 404. */
export function readKeyId(text: string): KeyId {
  const keyId = parseId<'key'>(text)
  if (keyId === null) throw new ApiError('not_found')
  return keyId
}

/** Undefined stays undefined, because its meaning depends on the caller. */
export function readExpiry(
  text: string | null | undefined,
  nowMs: number,
): Date | null | undefined {
  if (text === null || text === undefined) return text
  const expiresAtMs = parseRfc3339(text)
  if (expiresAtMs !== null && expiresAtMs > nowMs) return new Date(expiresAtMs)
  const message = 'must be in the future'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /expiresAt ${message}.`,
    details: [{ path: '/expiresAt', message }],
  })
}
