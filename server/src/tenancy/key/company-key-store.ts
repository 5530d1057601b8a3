import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type KeyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { type KeyPermission, readPermissions } from './key-permissions.ts'
import type { KeyUse } from './key-store.ts'
import { COMPANY_BOUNDS } from '../plans.ts'
import type { KeyScope } from '../principal.ts'

/** A key as shown to the members who manage it. */
export type CompanyKey = {
  id: KeyId
  kid: string
  name: string
  scope: KeyScope
  workspaceId: WorkspaceId | null
  /** Null: everything that the scope allows. */
  permissions: readonly KeyPermission[] | null
  createdAt: Date
  expiresAt: Date | null
  graceUntil: Date | null
  revokedAt: Date | null
  use: KeyUse | null
}

type KeyPosition = { companyId: CompanyId; keyId: KeyId }

/** Newest first, including expired and revoked keys. Ids are ordered by creation time. */
export async function listCompanyKeys(
  db: Queryable,
  where: {
    companyId: CompanyId
    workspaceId: WorkspaceId | null
    before: KeyId | null
    limit: number
  },
): Promise<CompanyKey[]> {
  let query = selectKeys(db).where('k.company_id', '=', where.companyId)
  if (where.workspaceId !== null) query = query.where('k.workspace_id', '=', where.workspaceId)
  if (where.before !== null) query = query.where('k.id', '<', where.before)
  const rows = await query.orderBy('k.id', 'desc').limit(where.limit).execute()
  return rows.map(toCompanyKey)
}

export async function getCompanyKey(
  db: Queryable,
  { companyId, keyId }: KeyPosition,
): Promise<CompanyKey> {
  const row = await selectKeys(db)
    .where('k.company_id', '=', companyId)
    .where('k.id', '=', keyId)
    .executeTakeFirst()
  if (!row) throw new ApiError('not_found')
  return toCompanyKey(row)
}

function selectKeys(db: Queryable) {
  return db
    .selectFrom('api_key as k')
    .leftJoin('api_key_use as u', 'u.key_id', 'k.id')
    .select([
      'k.id',
      'k.kid',
      'k.name',
      'k.scope',
      'k.workspace_id',
      'k.permissions',
      'k.created_at',
      'k.expires_at',
      'k.grace_until',
      'k.revoked_at',
      'u.used_at',
      'u.used_ip',
      'u.used_endpoint',
      'u.calls',
      'u.failures',
    ])
}

type KeyRow = Awaited<ReturnType<ReturnType<typeof selectKeys>['execute']>>[number]

function toCompanyKey(row: KeyRow): CompanyKey {
  return {
    id: assertId(row.id),
    kid: row.kid,
    name: row.name,
    scope: row.scope === 'COMPANY' ? 'COMPANY' : 'WORKSPACE',
    workspaceId: row.workspace_id === null ? null : assertId(row.workspace_id),
    permissions: readPermissions(row.permissions),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    graceUntil: row.grace_until,
    revokedAt: row.revoked_at,
    use: row.used_at && {
      usedAt: row.used_at,
      usedIp: row.used_ip ?? '',
      usedEndpoint: row.used_endpoint ?? '',
      calls: row.calls ?? 0,
      failures: row.failures ?? 0,
    },
  }
}

export async function renameKey(
  db: Queryable,
  { companyId, keyId }: KeyPosition,
  name: string,
): Promise<void> {
  await db
    .updateTable('api_key')
    .set({ name })
    .where('company_id', '=', companyId)
    .where('id', '=', keyId)
    .execute()
}

/** Returns false if the key was already revoked. */
export async function markKeyRevoked(
  db: Queryable,
  { companyId, keyId }: KeyPosition,
  now: Date,
): Promise<boolean> {
  const result = await db
    .updateTable('api_key')
    .set({ revoked_at: now })
    .where('company_id', '=', companyId)
    .where('id', '=', keyId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** The key keeps working until the given time. Returns false if it was already replaced or revoked. */
export async function markKeyReplaced(
  db: Queryable,
  { companyId, keyId }: KeyPosition,
  { replacedAt, graceUntil }: { replacedAt: Date; graceUntil: Date },
): Promise<boolean> {
  const result = await db
    .updateTable('api_key')
    .set({ replaced_at: replacedAt, grace_until: graceUntil })
    .where('company_id', '=', companyId)
    .where('id', '=', keyId)
    .where('revoked_at', 'is', null)
    .where('grace_until', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Limits the replaced keys that repeated rotation leaves behind. Call it with the company locked. */
export async function refuseTooManyRotating(
  db: Queryable,
  { companyId, workspaceId }: { companyId: CompanyId; workspaceId: WorkspaceId | null },
  now: Date,
): Promise<void> {
  const { count } = await db
    .selectFrom('api_key')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', companyId)
    .where('workspace_id', 'is not distinct from', workspaceId)
    .where('revoked_at', 'is', null)
    .where('grace_until', '>', now)
    .executeTakeFirstOrThrow()
  if (count < COMPANY_BOUNDS.keysPerWorkspaceMax) return
  throw new ApiError('conflict', {
    message: `${count} replaced keys are in their grace period, which is the maximum. Revoke some of them, or rotate without a grace period.`,
  })
}
