import { sql } from 'kysely'
import { assertId, type CompanyId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'

/** A company in the operator's list. */
export type CompanySummary = {
  id: CompanyId
  name: string
  plan: string
  createdAt: Date
  workspaces: number
  members: number
  /** Without the audit log. A worker counts events with a delay. */
  eventsThisMonth: number
}

type CompanyPage = {
  /** Null for the first page. */
  after: CompanyId | null
  limit: number
  /** The first day of the month, in UTC. */
  monthStart: Date
}

/** Oldest first: ids are ordered by creation time. */
export async function listCompanySummaries(
  db: Queryable,
  { after, limit, monthStart }: CompanyPage,
): Promise<CompanySummary[]> {
  const page = sql`
    select id from company
     where ${after}::uuid is null or id > ${after}::uuid
     order by id
     limit ${limit}`
  return await selectSummaries(db, page, monthStart)
}

/** Returns null if the company doesn't exist. */
export async function findCompanySummary(
  db: Queryable,
  { companyId, monthStart }: { companyId: CompanyId; monthStart: Date },
): Promise<CompanySummary | null> {
  const page = sql`select id from company where id = ${companyId}`
  const [summary] = await selectSummaries(db, page, monthStart)
  return summary ?? null
}

/** Reads one row per workspace and day, and no events. */
async function selectSummaries(
  db: Queryable,
  page: ReturnType<typeof sql>,
  monthStart: Date,
): Promise<CompanySummary[]> {
  const { rows } = await sql<CompanySummary & { id: string }>`
    with page as materialized (${page})
    select c.id, c.name, c.plan, c.created_at as "createdAt",
           (select count(*) from workspace w
             where w.company_id = c.id and w.kind = 'CUSTOMER') as workspaces,
           (select count(*) from app_user u where u.company_id = c.id) as members,
           (select coalesce(sum(d.events), 0)::bigint
              from workspace w
              join event_day d on d.workspace_id = w.id
             where w.company_id = c.id and w.kind = 'CUSTOMER'
               and d.day >= (${monthStart}::timestamptz at time zone 'UTC')::date) as "eventsThisMonth"
      from page
      join company c on c.id = page.id
     order by c.id`.execute(db)
  return rows.map((row) => ({ ...row, id: assertId(row.id) }))
}
