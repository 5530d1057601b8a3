import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import type { CompanyId, Id, UserId, WorkspaceId } from '../../../platform/id.ts'

export type ExportJobId = Id<'export-job'>

export const EXPORT_SOURCES = ['HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED'] as const
export type ExportSource = (typeof EXPORT_SOURCES)[number]

export const EXPORT_FORMATS = ['JSONL', 'CSV'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/**
 * What the file of a job proves beyond its rows. COMPLETE: stubs take the place of the events that the filters
 * skip, so no matching row can be missing. MEMBERSHIP: COMPLETE was requested, but the filters use
 * fields that stubs don't have.
 */
export const EXPORT_EVIDENCE = ['NONE', 'MEMBERSHIP', 'COMPLETE'] as const
export type ExportEvidence = (typeof EXPORT_EVIDENCE)[number]

/** How often a schedule exports its template. */
export const CADENCES = ['DAILY', 'WEEKLY', 'MONTHLY'] as const
export type Cadence = (typeof CADENCES)[number]

export const EXPORT_STATUSES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED'] as const
export type ExportStatus = (typeof EXPORT_STATUSES)[number]

/**
 * The state machine. Downloading runs the job: a download can be opened in PENDING and RUNNING, even several
 * at once, and the first to finish sets the job to SUCCEEDED. An aborted download leaves the job RUNNING.
 */
export const EXPORT_TRANSITIONS: Record<ExportStatus, readonly ExportStatus[]> = {
  PENDING: ['RUNNING', 'FAILED', 'CANCELED'],
  RUNNING: ['SUCCEEDED', 'FAILED', 'CANCELED'],
  SUCCEEDED: [],
  FAILED: [],
  CANCELED: [],
}

/** States that are not final. A download can be opened in them. */
export const OPEN_EXPORT_STATUSES = [
  'PENDING',
  'RUNNING',
] as const satisfies readonly ExportStatus[]

export function isOpen(status: ExportStatus): boolean {
  return OPEN_EXPORT_STATUSES.some((open) => open === status)
}

/** The job as the resource of an audit entry. */
export function exportResource({ id }: Pick<ExportJob, 'id'>) {
  return { type: 'export_job', id }
}

/**
 * A run of one workspace's chain, both ends included. In an empty one, `fromSeq` is `toSeq` + 1. Only COMPLETE jobs
 * store empty ranges, because only they can prove that nothing is missing.
 */
export type ExportRange = { workspaceId: WorkspaceId; fromSeq: number; toSeq: number }

export function isEmptyRange({ fromSeq, toSeq }: ExportRange): boolean {
  return fromSeq > toSeq
}

/** The first and the last line of a workspace in a file. With COMPLETE, a line can be a stub. */
export type SeqSpan = { firstSeq: number; lastSeq: number }

/** How a job can fail, and what to do about it. The job's own summary says what failed and where. */
export const EXPORT_FAILURES = {
  expired: {
    message: 'The export was not completely downloaded within seven days.',
    retryHint: 'Rerun the export and download it within seven days.',
  },
  canceled: {
    message: 'The export was canceled.',
    retryHint: 'Rerun the export if you still need it.',
  },
  segment_missing: {
    message: 'Part of the archive is missing.',
    retryHint:
      'Ask the operator to restore the file named in the summary, then rerun the export. `annals verify` lists every missing file.',
  },
  segment_damaged: {
    message: 'Part of the archive is damaged.',
    retryHint:
      'Ask the operator to restore the file named in the summary from a backup, then rerun the export.',
  },
  storage_unavailable: {
    message: 'The archive storage could not be read.',
    retryHint:
      'Open the download again later; the job stays open. If the problem persists, ask the operator to check the storage.',
  },
  download_too_large: {
    message: 'The export is too large for a download in the dashboard.',
    retryHint: 'Narrow the filters, or download the export through the API.',
  },
  internal: {
    message: 'Something went wrong on our side.',
    retryHint: 'Rerun the export. If it fails again, report it with the job id.',
  },
} as const
export type ExportErrorCode = keyof typeof EXPORT_FAILURES

/** What differs for a schedule, whose file is stored by the service and not downloaded by a client. */
const SCHEDULE_FAILURES: Partial<Record<ExportErrorCode, ExportFailure>> = {
  expired: {
    message: 'The file could not be stored within seven days.',
    retryHint: 'Ask the operator to check the storage, then rerun the export.',
  },
  storage_unavailable: {
    message: 'The archive storage could not be read or written.',
    retryHint:
      'Annals retries it on its own. If the problem persists, ask the operator to check the storage.',
  },
}
type ExportFailure = { message: string; retryHint: string }

/** What a failure of this job means, and what to do about it. */
export function exportFailureOf(
  job: Pick<ExportJob, 'cadence'>,
  code: ExportErrorCode,
): ExportFailure {
  return (job.cadence !== null && SCHEDULE_FAILURES[code]) || EXPORT_FAILURES[code]
}

export function isExportErrorCode(code: string): code is ExportErrorCode {
  return Object.hasOwn(EXPORT_FAILURES, code)
}

export type FailedAttempt = {
  at: Date
  code: ExportErrorCode
  /** What failed, and where. */
  summary: string
}

export type ExportJob = {
  id: ExportJobId
  companyId: CompanyId
  /** The workspace of the key that created it. Null if it belongs to the company. */
  workspaceId: WorkspaceId | null
  /** The member who created it in the dashboard. Null if a key created it. */
  createdBy: UserId | null
  /** Null if the caller didn't name it. */
  name: string | null
  /** How often its schedule runs. Null if a member or a key created it. */
  cadence: Cadence | null
  source: ExportSource
  format: ExportFormat
  filter: EventFilter
  /** The workspace named in the filters. */
  filterWorkspaceId: WorkspaceId | null
  evidence: ExportEvidence
  ranges: ExportRange[]
  /** When the ranges were fixed, for COMPLETE jobs. A rerun has the ranges and the time of the first job. */
  snapshotAtMs: number | null
  /**
   * The lines of each range in the file, or null for a range without lines. All of it is null until the job has
   * succeeded, and if an earlier version of Annals finished it.
   */
  spans: readonly (SeqSpan | null)[] | null
  rowLimit: number
  status: ExportStatus
  rowsExported: number
  /** Null until the job has succeeded. */
  isTruncated: boolean | null
  sha256: string | null
  bytes: number | null
  errorCode: ExportErrorCode | null
  /** What failed, and where. */
  failureSummary: string | null
  /** The last problem that left the job open. Null if there was none, and once the job has succeeded. */
  lastAttempt: FailedAttempt | null
  /** How many objects its file has in the storage. Null if it isn't stored there, at least not completely. */
  storedParts: number | null
  rerunOf: ExportJobId | null
  createdAt: Date
  startedAt: Date | null
  finishedAt: Date | null
  expiresAt: Date
}
