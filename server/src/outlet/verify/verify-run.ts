import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'

export type VerifyRunId = Id<'verify-run'>

export const VERIFY_STATUSES = ['RUNNING', 'HOLDS', 'BROKEN', 'FAILED', 'CANCELED'] as const
export type VerifyStatus = (typeof VERIFY_STATUSES)[number]

/** A verification of one chain that a member requested, and its result. */
export type VerifyRun = {
  id: VerifyRunId
  companyId: CompanyId
  workspaceId: WorkspaceId
  status: VerifyStatus
  /** Number of events verified so far. */
  checked: number
  /** Number of events in the chain when the run was created. */
  total: number
  /** A sentence for the member. Null while the run is in progress. */
  verdict: string | null
  /** The first bad event. */
  badSeq: number | null
  badEventId: string | null
  createdBy: UserId | null
  createdAt: Date
  finishedAt: Date | null
}
