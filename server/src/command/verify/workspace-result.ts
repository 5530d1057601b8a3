import type { KeptCheckpoint } from '../../outlet/proof/check-tree.ts'
import type { VerifyOutcome } from '../../outlet/verify/verify-outcome.ts'
import type { WorkspaceId } from '../../platform/id.ts'

/** Something that is wrong. Its line is the kind, followed by the text. */
export type VerifyFinding = {
  kind: 'BROKEN' | 'LOST' | 'RESTORING' | 'UNREADABLE'
  /** Null if it isn't about one workspace. */
  workspaceId: WorkspaceId | null
  seq: number | null
  eventId: string | null
  text: string
}

/** The verdict on one workspace, and what the operator sees if there is a fault. */
export type WorkspaceResult = {
  workspaceId: WorkspaceId
  outcome: VerifyOutcome
  /** How many events were verified, and how many before them were not. */
  events: number
  skipped: number
  fault: 'broken' | 'unchecked' | 'mismatched' | null
  finding: VerifyFinding | null
  isSigned: boolean
  /** The signed checkpoint that the events were compared with. Null if there is a fault. */
  checkpoint: KeptCheckpoint | null
}
