import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import type { CompanyId, Id, WorkspaceId } from '../../../platform/id.ts'
import { DAY_MS, MINUTE_MS } from '../../../platform/time/time-units.ts'
import type { Cadence, ExportEvidence, ExportFormat } from '../job/export-job.ts'

/** What a schedule exports. Each run adds the times of its period. */
export type ScheduleSettings = {
  name: string
  format: ExportFormat
  filter: EventFilter
  /** The workspace of the template. Null for all workspaces of the company. */
  filterWorkspaceId: WorkspaceId | null
  /** Each run decides whether its filters can be proven. */
  evidence: ExportEvidence
  /** Null for the maximum of the plan. */
  limit: number | null
}

export type ExportSchedule = ScheduleSettings & {
  companyId: CompanyId
  templateId: Id<'export-template'>
  cadence: Cadence
  /** The end of the next period. */
  periodEndMs: number
  /** When that period is exported. */
  dueAt: Date
  /** Why the period could not be exported yet. Null if there was no problem. */
  problem: string | null
}

/** Events need a moment to arrive after the end of their period. */
const DELAY_MS = 15 * MINUTE_MS
const WEEK_MS = 7 * DAY_MS
const FIRST_MONDAY_MS = 4 * DAY_MS

/** When the period with this end is exported. */
export function dueAtOf(periodEndMs: number): Date {
  return new Date(periodEndMs + DELAY_MS)
}

/** The end of the period that contains the time, in UTC. A week starts on Monday. */
export function periodEndAfter(cadence: Cadence, ms: number): number {
  switch (cadence) {
    case 'DAILY':
      return (Math.floor(ms / DAY_MS) + 1) * DAY_MS
    case 'WEEKLY':
      return FIRST_MONDAY_MS + (Math.floor((ms - FIRST_MONDAY_MS) / WEEK_MS) + 1) * WEEK_MS
    case 'MONTHLY':
      return monthOf(ms, 1)
    default:
      return cadence satisfies never
  }
}

/** The start of the period with this end. */
export function periodStartOf(cadence: Cadence, endMs: number): number {
  switch (cadence) {
    case 'DAILY':
      return endMs - DAY_MS
    case 'WEEKLY':
      return endMs - WEEK_MS
    case 'MONTHLY':
      return monthOf(endMs, -1)
    default:
      return cadence satisfies never
  }
}

function monthOf(ms: number, offset: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset)
}
