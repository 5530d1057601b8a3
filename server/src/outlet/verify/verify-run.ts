import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'

export type VerifyRunId = Id<'verify-run'>

export const VERIFY_STATUSES = ['RUNNING', 'HOLDS', 'BROKEN', 'FAILED', 'CANCELED'] as const
export type VerifyStatus = (typeof VERIFY_STATUSES)[number]

/** A look through one chain that somebody asked for, and what it found. */
export type VerifyRun = {
  id: VerifyRunId
  companyId: CompanyId
  workspaceId: WorkspaceId
  status: VerifyStatus
  /** Events that were found to hold so far. */
  checked: number
  /** Those the chain had when the run began. */
  total: number
  /** A sentence; null while it runs. */
  verdict: string | null
  /** The first event that does not hold. */
  badSeq: number | null
  badEventId: string | null
  createdBy: UserId | null
  createdAt: Date
  finishedAt: Date | null
}
