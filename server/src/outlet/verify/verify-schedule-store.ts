import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** Gives new workspaces a random time within the interval, so that they are not all due at once. */
export async function addSchedules(
  db: Queryable,
  { now, intervalMs, limit }: { now: Date; intervalMs: number; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into verify_schedule (workspace_id, due_at)
    select w.id, ${now}::timestamptz + random() * ${intervalMs} * interval '1 millisecond'
      from workspace w
     where not exists (select from verify_schedule s where s.workspace_id = w.id)
     limit ${limit}
    on conflict do nothing`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

type DueVerification = { workspaceId: WorkspaceId; companyId: CompanyId; dueAt: Date }

/**
 * Locks the schedule of the chain that has been due longest, until the transaction ends. A company with an open
 * scheduled run waits, so that one with many workspaces doesn't fill the queue. A chain that is due more than an
 * interval from now was scheduled while the clock was ahead or the interval was longer.
 */
export async function lockDueSchedule(
  trx: Queryable,
  { now, intervalMs }: { now: Date; intervalMs: number },
): Promise<DueVerification | null> {
  const dueMax = new Date(now.getTime() + intervalMs)
  const { rows } = await sql<{ workspaceId: string; companyId: string; dueAt: Date }>`
    select s.workspace_id as "workspaceId", w.company_id as "companyId", s.due_at as "dueAt"
      from verify_schedule s
      join workspace w on w.id = s.workspace_id
     where (s.due_at <= ${now} or s.due_at > ${dueMax})
       and not exists (
         select from verify_run r
          where r.company_id = w.company_id and r.status = 'RUNNING' and r.is_scheduled)
     order by s.due_at, s.workspace_id
     limit 1
       for update of s skip locked`.execute(trx)
  const [row] = rows
  if (!row) return null
  const { workspaceId, companyId, dueAt } = row
  return { workspaceId: assertId(workspaceId), companyId: assertId(companyId), dueAt }
}

/** Repeats a verification at this time, unless it is due earlier anyway. */
export async function repeatVerification(
  trx: Queryable,
  workspaceId: WorkspaceId,
  at: Date,
): Promise<void> {
  await sql`
    update verify_schedule set due_at = least(due_at, ${at})
     where workspace_id = ${workspaceId}`.execute(trx)
}

export async function moveVerifySchedule(
  trx: Queryable,
  workspaceId: WorkspaceId,
  dueAt: Date,
): Promise<void> {
  await trx
    .updateTable('verify_schedule')
    .set({ due_at: dueAt })
    .where('workspace_id', '=', workspaceId)
    .execute()
}
