import assert from 'node:assert/strict'
import { sql } from 'kysely'
import type { CompanyId, UserId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { type Plan, PLANS } from './plans.ts'

export async function insertCompany(
  db: Queryable,
  company: { id: CompanyId; name: string; plan: Plan; allowlist: string[] },
): Promise<void> {
  await db.insertInto('company').values(company).execute()
}

export async function updatePlan(
  db: Queryable,
  { companyId, plan }: { companyId: CompanyId; plan: Plan },
): Promise<void> {
  await db.updateTable('company').set({ plan }).where('id', '=', companyId).execute()
}

/**
 * Serializes everything that counts against a company's limits, so that two concurrent requests can't both
 * take the last slot. Returns the plan, which can't change until the caller's transaction ends.
 */
export async function lockCompany(db: Queryable, companyId: CompanyId): Promise<Plan | null> {
  const row = await db
    .selectFrom('company')
    .select('plan')
    .where('id', '=', companyId)
    .forUpdate()
    .executeTakeFirst()
  return PLANS.find((plan) => plan === row?.plan) ?? null
}

export type Allowlist = {
  entries: readonly string[]
  /** Applies to all calls with a key, not only to webhook changes. */
  forAllCalls: boolean
  /** Applies to members in the dashboard. */
  forDashboard: boolean
}

type CompanyDetails = {
  name: string
  createdAt: Date
  allowlist: Allowlist
  requiresSecondFactor: boolean
}

export async function readCompanyDetails(
  db: Queryable,
  companyId: CompanyId,
): Promise<CompanyDetails> {
  const row = await db
    .selectFrom('company')
    .select(['name', 'created_at', 'allowlist', 'allowlist_for_all_calls'])
    .select('allowlist_for_dashboard')
    .select('requires_second_factor')
    .where('id', '=', companyId)
    .executeTakeFirstOrThrow()
  return {
    name: row.name,
    createdAt: row.created_at,
    allowlist: {
      entries: row.allowlist,
      forAllCalls: row.allowlist_for_all_calls,
      forDashboard: row.allowlist_for_dashboard,
    },
    requiresSecondFactor: row.requires_second_factor,
  }
}

export async function requiresSecondFactor(db: Queryable, companyId: CompanyId): Promise<boolean> {
  const row = await db
    .selectFrom('company')
    .select('requires_second_factor')
    .where('id', '=', companyId)
    .executeTakeFirstOrThrow()
  return row.requires_second_factor
}

export async function setSecondFactorRequired(
  db: Queryable,
  { companyId, isRequired }: { companyId: CompanyId; isRequired: boolean },
): Promise<void> {
  await db
    .updateTable('company')
    .set({ requires_second_factor: isRequired })
    .where('id', '=', companyId)
    .execute()
}

export async function renameCompany(
  db: Queryable,
  { companyId, name }: { companyId: CompanyId; name: string },
): Promise<void> {
  await db.updateTable('company').set({ name }).where('id', '=', companyId).execute()
}

export async function updateAllowlist(
  db: Queryable,
  companyId: CompanyId,
  { entries, forAllCalls, forDashboard }: Allowlist,
): Promise<void> {
  await db
    .updateTable('company')
    .set({
      allowlist: [...entries],
      allowlist_for_all_calls: forAllCalls,
      allowlist_for_dashboard: forDashboard,
    })
    .where('id', '=', companyId)
    .execute()
}

/** The allowlist that applies to a member in the dashboard. Null if none does. */
export async function findDashboardAllowlist(
  db: Queryable,
  userId: UserId,
): Promise<readonly string[] | null> {
  const row = await db
    .selectFrom('company as c')
    .innerJoin('app_user as u', 'u.company_id', 'c.id')
    .select('c.allowlist')
    .where('u.id', '=', userId)
    .where('c.allowlist_for_dashboard', '=', true)
    .executeTakeFirst()
  return row?.allowlist ?? null
}

/** Returns false if the allowlist didn't apply to the dashboard. */
export async function openDashboard(db: Queryable, companyId: CompanyId): Promise<boolean> {
  const result = await db
    .updateTable('company')
    .set({ allowlist_for_dashboard: false })
    .where('id', '=', companyId)
    .where('allowlist_for_dashboard', '=', true)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** How much of each limited resource a company has, counted the way the limits are enforced. */
export type CompanyCounts = {
  workspaces: number
  members: number
  companyKeys: number
  views: number
  openExports: number
}

export async function countCompany(
  db: Queryable,
  companyId: CompanyId,
  now: Date,
): Promise<CompanyCounts> {
  const { rows } = await sql<CompanyCounts>`
    select (select count(*) from workspace
             where company_id = ${companyId} and kind = 'CUSTOMER') as workspaces,
           (select count(*) from app_user where company_id = ${companyId})
         + (select count(*) from one_time_link
             where company_id = ${companyId} and kind = 'INVITATION') as members,
           (select count(*) from api_key
             where company_id = ${companyId} and workspace_id is null and revoked_at is null
               and grace_until is null and (expires_at is null or expires_at > ${now})) as "companyKeys",
           (select count(*) from explorer_view where company_id = ${companyId}) as views,
           (select count(*) from export_job
             where company_id = ${companyId} and status in ('PENDING', 'RUNNING')
               and expires_at > ${now}) as "openExports"`.execute(db)
  const [counts] = rows
  assert(counts, 'a count has a row')
  return counts
}

export async function hasCompanies(db: Queryable): Promise<boolean> {
  const row = await db.selectFrom('company').select('id').limit(1).executeTakeFirst()
  return row !== undefined
}
