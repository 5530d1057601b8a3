import { type RawBuilder, sql } from 'kysely'
import { assertId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { NoticeDraft } from './notice.ts'
import { timeText } from './notice.ts'

type KeyRow = {
  id: string
  companyId: string
  workspaceId: string | null
  name: string
  kid: string
}

/**
 * Keys that expire within 14 or 3 days and have no notice about it yet. A key that was valid for less than
 * that time from the start gets none.
 */
export async function listExpiringKeys(
  db: Queryable,
  { now, limit }: { now: Date; limit: number },
): Promise<NoticeDraft[]> {
  const { rows } = await sql<KeyRow & { expiresAt: Date; days: number }>`
    select * from (
      select id, company_id as "companyId", workspace_id as "workspaceId", name, kid,
             expires_at as "expiresAt", created_at,
             case when expires_at <= ${now}::timestamptz + interval '3 days' then 3 else 14 end as days
        from api_key
       where revoked_at is null and grace_until is null
         and expires_at > ${now} and expires_at <= ${now}::timestamptz + interval '14 days') as k
     where k.created_at <= k."expiresAt" - k.days * interval '1 day'
       and ${hasNoNotice(sql`'KEY_EXPIRING:' || k.id || ':' || k.days`)}
     order by "expiresAt"
     limit ${limit}`.execute(db)
  return rows.map(({ days, expiresAt, ...key }) => ({
    ...placeOf(key),
    kind: 'KEY_EXPIRING',
    cause: `${key.id}:${days}`,
    message: `${labelOf(key)} expires in less than ${days} days, at ${timeText(expiresAt)}. Rotate it before then.`,
  }))
}

/**
 * Replaced keys that still work and were used when their clients should have had the new one: an hour after
 * the replacement, or after half of a shorter grace period.
 */
export async function listUsedReplacedKeys(
  db: Queryable,
  { now, limit }: { now: Date; limit: number },
): Promise<NoticeDraft[]> {
  const { rows } = await sql<KeyRow & { usedAt: Date; usedIp: string; graceUntil: Date }>`
    select k.id, k.company_id as "companyId", k.workspace_id as "workspaceId", k.name, k.kid,
           u.used_at as "usedAt", u.used_ip as "usedIp", k.grace_until as "graceUntil"
      from api_key k
      join api_key_use u on u.key_id = k.id
     where k.revoked_at is null and k.grace_until > ${now}
       and u.used_at > k.replaced_at + least(interval '1 hour', (k.grace_until - k.replaced_at) / 2)
       and ${hasNoNotice(sql`'KEY_USED_AFTER_REPLACEMENT:' || k.id`, sql`k.company_id`)}
     order by k.grace_until
     limit ${limit}`.execute(db)
  return rows.map(({ usedAt, usedIp, graceUntil, ...key }) => ({
    ...placeOf(key),
    kind: 'KEY_USED_AFTER_REPLACEMENT',
    cause: key.id,
    message: `${labelOf(key)} was replaced but still used at ${timeText(usedAt)} from ${usedIp}. It stops working at ${timeText(graceUntil)}.`,
  }))
}

function hasNoNotice(
  cause: RawBuilder<unknown>,
  companyId: RawBuilder<unknown> = sql`k."companyId"`,
): RawBuilder<boolean> {
  return sql<boolean>`not exists (
    select from notice_cause c where c.company_id = ${companyId} and c.cause = ${cause})`
}

function placeOf({ companyId, workspaceId }: KeyRow) {
  return {
    companyId: assertId<'company'>(companyId),
    workspaceId: workspaceId === null ? null : assertId<'workspace'>(workspaceId),
    link: '/app/keys',
  }
}

function labelOf({ name, kid }: KeyRow): string {
  return `The key ${name} (annals_${kid})`
}
