import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type KeyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DAY_MS, HOUR_MS } from '../../platform/time/time-units.ts'
import { lockCompany } from '../company-store.ts'
import { type KeyPermission, readPermissions } from './key-permissions.ts'
import { COMPANY_BOUNDS, isPlan, type Plan } from '../plans.ts'
import type { KeyScope } from '../principal.ts'

/** A key with what access checks need to know about its company, so that one lookup covers them all. */
export type StoredKey = {
  id: KeyId
  kid: string
  name: string
  secretHash: Buffer
  scope: KeyScope
  companyId: CompanyId
  workspaceId: WorkspaceId | null
  createdAt: Date
  expiresAt: Date | null
  graceUntil: Date | null
  revokedAt: Date | null
  /** Null: everything that the scope allows. */
  permissions: readonly KeyPermission[] | null
  plan: Plan
  allowlist: readonly string[]
  allowlistForAllCalls: boolean
  systemWorkspaceId: WorkspaceId
}

export async function findKeyByKid(db: Queryable, kid: string): Promise<StoredKey | null> {
  const row = await selectKeys(db).where('k.kid', '=', kid).executeTakeFirst()
  return row ? toKey(row) : null
}

/** Returns the keys that exist, in any order. */
export async function listKeysByKid(db: Queryable, kids: readonly string[]): Promise<StoredKey[]> {
  const rows = await selectKeys(db)
    .where(sql<boolean>`k.kid = any (${kids}::text[])`)
    .execute()
  return rows.flatMap((row) => toKey(row) ?? [])
}

function selectKeys(db: Queryable) {
  return db
    .selectFrom('api_key as k')
    .innerJoin('company as c', 'c.id', 'k.company_id')
    .innerJoin('workspace as s', (join) =>
      join.onRef('s.company_id', '=', 'k.company_id').on('s.kind', '=', 'SYSTEM'),
    )
    .select([
      'k.id',
      'k.kid',
      'k.name',
      'k.secret_hash',
      'k.scope',
      'k.company_id',
      'k.workspace_id',
      'k.created_at',
      'k.expires_at',
      'k.grace_until',
      'k.revoked_at',
      'k.permissions',
      'c.plan',
      'c.allowlist',
      'c.allowlist_for_all_calls',
      's.id as system_workspace_id',
    ])
}

type KeyRow = Awaited<ReturnType<ReturnType<typeof selectKeys>['executeTakeFirstOrThrow']>>

function toKey(row: KeyRow): StoredKey | null {
  if (!isPlan(row.plan)) return null
  return {
    id: assertId(row.id),
    kid: row.kid,
    name: row.name,
    secretHash: row.secret_hash,
    scope: row.scope === 'COMPANY' ? 'COMPANY' : 'WORKSPACE',
    companyId: assertId(row.company_id),
    workspaceId: row.workspace_id === null ? null : assertId(row.workspace_id),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    graceUntil: row.grace_until,
    revokedAt: row.revoked_at,
    permissions: readPermissions(row.permissions),
    plan: row.plan,
    allowlist: row.allowlist,
    allowlistForAllCalls: row.allowlist_for_all_calls,
    systemWorkspaceId: assertId(row.system_workspace_id),
  }
}

/**
 * Call it inside a transaction: the lock that enforces the limit lasts until the transaction ends. All
 * company keys share one limit, as if they belonged to a workspace. Expired, revoked and replaced keys
 * don't count.
 */
export async function insertKey(
  db: Queryable,
  key: {
    id: KeyId
    companyId: CompanyId
    workspaceId: WorkspaceId | null
    kid: string
    secretHash: Buffer
    name: string
    permissions: readonly KeyPermission[] | null
    expiresAt: Date | null
  },
  nowMs: number,
): Promise<void> {
  await lockCompany(db, key.companyId)
  const { count } = await db
    .selectFrom('api_key')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', key.companyId)
    .where('workspace_id', 'is not distinct from', key.workspaceId)
    .where('revoked_at', 'is', null)
    .where('grace_until', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', new Date(nowMs))]))
    .executeTakeFirstOrThrow()
  if (count >= COMPANY_BOUNDS.keysPerWorkspaceMax) {
    const owner = key.workspaceId === null ? 'A company' : 'A workspace'
    throw new ApiError('conflict', {
      message: `${owner} can have at most ${COMPANY_BOUNDS.keysPerWorkspaceMax} keys. Revoke one first.`,
    })
  }
  await refuseManyNewKeys(db, key, nowMs)
  await db
    .insertInto('api_key')
    .values({
      id: key.id,
      company_id: key.companyId,
      workspace_id: key.workspaceId,
      kid: key.kid,
      secret_hash: key.secretHash,
      scope: key.workspaceId === null ? 'COMPANY' : 'WORKSPACE',
      name: key.name,
      permissions: key.permissions && [...key.permissions],
      expires_at: key.expiresAt,
      grace_until: null,
      revoked_at: null,
    })
    .execute()
}

/** Revoked keys stay in the list, so a company that creates and revokes keys in a loop is stopped. */
async function refuseManyNewKeys(
  db: Queryable,
  { companyId }: { companyId: CompanyId },
  nowMs: number,
): Promise<void> {
  const { count } = await db
    .selectFrom('api_key')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', companyId)
    .where('created_at', '>', new Date(nowMs - DAY_MS))
    .executeTakeFirstOrThrow()
  if (count < COMPANY_BOUNDS.newKeysPerDayMax) return
  throw new ApiError('rate_limited', {
    message: `A company can create at most ${COMPANY_BOUNDS.newKeysPerDayMax} keys in 24 hours.`,
    retryAfterSeconds: HOUR_MS / 1_000,
  })
}

export type KeyUse = {
  usedAt: Date
  usedIp: string
  usedEndpoint: string
  /** Counted since UTC midnight of `usedAt`. */
  calls: number
  failures: number
}

export async function findKeyUse(db: Queryable, keyId: KeyId): Promise<KeyUse | null> {
  const row = await db
    .selectFrom('api_key_use')
    .select(['used_at', 'used_ip', 'used_endpoint', 'calls', 'failures'])
    .where('key_id', '=', keyId)
    .executeTakeFirst()
  if (!row) return null
  return {
    usedAt: row.used_at,
    usedIp: row.used_ip,
    usedEndpoint: row.used_endpoint,
    calls: row.calls,
    failures: row.failures,
  }
}

/** Adds the uses that one node counted. Nodes add to the same day's counters, and the latest use wins. */
export async function addKeyUses(
  db: Queryable,
  uses: readonly (KeyUse & { keyId: KeyId })[],
): Promise<void> {
  await sql`
    insert into api_key_use as u (key_id, used_at, used_ip, used_endpoint, day, calls, failures)
    select key_id, used_at, used_ip, used_endpoint, (used_at at time zone 'UTC')::date, calls, failures
      from unnest(${uses.map((use) => use.keyId)}::uuid[], ${uses.map((use) => use.usedAt)}::timestamptz[],
                  ${uses.map((use) => use.usedIp)}::text[], ${uses.map((use) => use.usedEndpoint)}::text[],
                  ${uses.map((use) => use.calls)}::bigint[], ${uses.map((use) => use.failures)}::bigint[])
           as seen (key_id, used_at, used_ip, used_endpoint, calls, failures)
     order by key_id
    on conflict (key_id) do update
       set used_at       = greatest(u.used_at, excluded.used_at),
           used_ip       = case when excluded.used_at >= u.used_at then excluded.used_ip else u.used_ip end,
           used_endpoint = case when excluded.used_at >= u.used_at then excluded.used_endpoint else u.used_endpoint end,
           day           = greatest(u.day, excluded.day),
           calls         = case when u.day = excluded.day then u.calls else 0 end + excluded.calls,
           failures      = case when u.day = excluded.day then u.failures else 0 end + excluded.failures`.execute(
    db,
  )
}
