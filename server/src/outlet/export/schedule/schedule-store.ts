import assert from 'node:assert/strict'
import { type Selectable, sql } from 'kysely'
import { ApiError } from '../../../errors.ts'
import { assertId, type CompanyId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Tables } from '../../../platform/pg/tables.ts'
import { lockCompany } from '../../../tenancy/company-store.ts'
import { COMPANY_BOUNDS, isPlan, type Plan } from '../../../tenancy/plans.ts'
import { CADENCES, EXPORT_FORMATS } from '../job/export-job.ts'
import { oneOf, readFilters, writeFilters } from '../job/export-job-row.ts'
import { type ExportSchedule, periodEndAfter } from './schedule.ts'

type ScheduleKey = Pick<ExportSchedule, 'companyId' | 'templateId'>

/** Creates or replaces a template's schedule. Call it inside a transaction: it locks the company. */
export async function saveSchedule(
  db: Queryable,
  schedule: ExportSchedule,
  now: Date,
): Promise<void> {
  await refuseTooManySchedules(db, schedule)
  const content = {
    cadence: schedule.cadence,
    name: schedule.name,
    format: schedule.format,
    filters: writeFilters({ ...schedule, snapshotAtMs: null }),
    row_limit: schedule.limit,
    period_end: new Date(schedule.periodEndMs),
    due_at: schedule.dueAt,
    problem: schedule.problem,
  }
  const { companyId: company_id, templateId: template_id } = schedule
  await db
    .insertInto('export_schedule')
    .values({ company_id, template_id, ...content, created_at: now })
    .onConflict((conflict) => conflict.columns(['company_id', 'template_id']).doUpdateSet(content))
    .execute()
}

const SCHEDULES_MAX = COMPANY_BOUNDS.exportSchedulesMax

async function refuseTooManySchedules(
  db: Queryable,
  { companyId, templateId }: ScheduleKey,
): Promise<void> {
  await lockCompany(db, companyId)
  const { rows } = await sql<{ count: number }>`
    select count(*) as count
      from export_schedule
     where company_id = ${companyId} and template_id <> ${templateId}`.execute(db)
  if ((rows[0]?.count ?? 0) < SCHEDULES_MAX) return
  throw new ApiError('conflict', {
    message: `A company can schedule at most ${SCHEDULES_MAX} templates. Stop one of the schedules first.`,
  })
}

/** Returns null if the template has no schedule. */
export async function findSchedule(
  db: Queryable,
  { companyId, templateId }: ScheduleKey,
): Promise<ExportSchedule | null> {
  const row = await db
    .selectFrom('export_schedule')
    .selectAll()
    .where('company_id', '=', companyId)
    .where('template_id', '=', templateId)
    .executeTakeFirst()
  return row ? toSchedule(row) : null
}

export async function listSchedules(
  db: Queryable,
  companyId: CompanyId,
): Promise<ExportSchedule[]> {
  const rows = await db
    .selectFrom('export_schedule')
    .selectAll()
    .where('company_id', '=', companyId)
    .limit(SCHEDULES_MAX)
    .execute()
  return rows.map(toSchedule)
}

/** Returns false if the template had no schedule. */
export async function deleteSchedule(
  db: Queryable,
  { companyId, templateId }: ScheduleKey,
): Promise<boolean> {
  const result = await db
    .deleteFrom('export_schedule')
    .where('company_id', '=', companyId)
    .where('template_id', '=', templateId)
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}

export type DueSchedule = ExportSchedule & { plan: Plan }

/** The schedule that has been due for the longest time, with its company's plan. */
export async function findDueSchedule(db: Queryable, now: Date): Promise<DueSchedule | null> {
  const row = await db
    .selectFrom('export_schedule as s')
    .innerJoin('company as c', 'c.id', 's.company_id')
    .selectAll('s')
    .select('c.plan')
    .where('s.due_at', '<=', now)
    .orderBy('s.due_at')
    .limit(1)
    .executeTakeFirst()
  if (!row) return null
  assert(isPlan(row.plan), 'a company has one of our plans')
  return { ...toSchedule(row), plan: row.plan }
}

/** Whether a period of a schedule has its job already. */
export async function hasScheduledJob(
  db: Queryable,
  {
    companyId,
    templateId,
    cadence,
    periodEndMs,
  }: Pick<ExportSchedule, 'companyId' | 'templateId' | 'cadence' | 'periodEndMs'>,
): Promise<boolean> {
  const row = await db
    .selectFrom('export_job')
    .select('id')
    .where('company_id', '=', companyId)
    .where('template_id', '=', templateId)
    .where('cadence', '=', cadence)
    .where('period_end', '=', new Date(periodEndMs))
    .executeTakeFirst()
  return row !== undefined
}

/** Schedules that wait for a period after the current one, because the clock was ahead when they last ran. */
export async function listFutureSchedules(
  db: Queryable,
  { nowMs, limit }: { nowMs: number; limit: number },
): Promise<ExportSchedule[]> {
  const rows = await db
    .selectFrom('export_schedule')
    .selectAll()
    .where((eb) =>
      eb.or(
        CADENCES.map((cadence) =>
          eb.and([
            eb('cadence', '=', cadence),
            eb('period_end', '>', new Date(periodEndAfter(cadence, nowMs))),
          ]),
        ),
      ),
    )
    .limit(limit)
    .execute()
  return rows.map(toSchedule)
}

/**
 * Makes jobs that were created while the clock was ahead ordinary ones, so that their periods are exported when
 * they have ended.
 */
export async function releaseFuturePeriods(
  db: Queryable,
  { companyId, templateId, cadence }: ExportSchedule,
  now: Date,
): Promise<void> {
  await db
    .updateTable('export_job')
    .set({ template_id: null, cadence: null, period_end: null })
    .where('company_id', '=', companyId)
    .where('template_id', '=', templateId)
    .where('cadence', '=', cadence)
    .where((eb) => eb.or([eb('period_end', '>', now), eb('created_at', '>', now)]))
    .execute()
}

type NextRun = { periodEndMs: number; dueAt: Date; problem: string | null }

/** Moves a schedule that is due. Returns false if another node did, or if the schedule was changed. */
export async function moveSchedule(
  db: Queryable,
  due: ExportSchedule,
  { periodEndMs, dueAt, problem }: NextRun,
): Promise<boolean> {
  const result = await db
    .updateTable('export_schedule')
    .set({ period_end: new Date(periodEndMs), due_at: dueAt, problem })
    .where('company_id', '=', due.companyId)
    .where('template_id', '=', due.templateId)
    .where('cadence', '=', due.cadence)
    .where('period_end', '=', new Date(due.periodEndMs))
    .where('due_at', '=', due.dueAt)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

function toSchedule(row: Selectable<Tables['export_schedule']>): ExportSchedule {
  return {
    companyId: assertId(row.company_id),
    templateId: assertId(row.template_id),
    cadence: oneOf(CADENCES, row.cadence),
    name: row.name,
    format: oneOf(EXPORT_FORMATS, row.format),
    ...readFilters(row.filters),
    limit: row.row_limit,
    periodEndMs: row.period_end.getTime(),
    dueAt: row.due_at,
    problem: row.problem,
  }
}
