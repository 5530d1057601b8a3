import type { DayCheckpoint } from '../../ledger/tree/checkpoint-day-store.ts'
import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'

export type VerifyRunId = Id<'verify-run'>

export const VERIFY_STATUSES = ['RUNNING', 'HOLDS', 'BROKEN', 'FAILED', 'CANCELED'] as const
export type VerifyStatus = (typeof VERIFY_STATUSES)[number]

/** Events by time of receipt, `from` included, `to` not. */
export type VerifyPeriod = { from: Date; to: Date }

/** What a run that holds has verified. */
export type Covered = {
  /** Null if there are no events. */
  range: { firstSeq: number; lastSeq: number } | null
  /** The signed checkpoint whose tree has these events. Null if there is none yet. */
  checkpoint: DayCheckpoint | null
}

/** A verification of one chain or a period of it, and its result. */
export type VerifyRun = {
  id: VerifyRunId
  companyId: CompanyId
  workspaceId: WorkspaceId
  status: VerifyStatus
  /** Number of events verified so far. */
  checked: number
  /** Number of events to verify. 0 until it is known. */
  total: number
  /** Null for the whole chain. */
  period: VerifyPeriod | null
  /** A sentence for the member. Null while the run is in progress. */
  verdict: string | null
  /** The first bad event. */
  badSeq: number | null
  badEventId: string | null
  /** Null unless the run holds. */
  covered: Covered | null
  /** Whether the schedule started it, instead of a member. */
  isScheduled: boolean
  createdBy: UserId | null
  createdAt: Date
  finishedAt: Date | null
}
