import type { Static } from 'typebox'
import {
  type ExportJob,
  type FailedAttempt,
  exportFailureOf,
} from '../../outlet/export/job/export-job.ts'
import type { MetadataTerm } from '../../ledger/search/metadata-term.ts'
import type { Preflight } from '../../outlet/export/preflight/preflight.ts'
import { formatUtcMs } from '../../platform/time/utc-time.ts'
import { exclusionText } from '../event/exclusion-text.ts'
import type { ExportRecord, ExportPreflight } from '../schema/export.ts'

/** Formats a job for a response. Counts are decimal strings, as in the API contract. */
export function exportRecord(job: ExportJob): Static<typeof ExportRecord> {
  const failure = job.errorCode === null ? null : exportFailureOf(job, job.errorCode)
  return {
    id: job.id,
    name: job.name,
    status: job.status,
    source: job.source,
    format: job.format,
    filters: filtersOf(job),
    evidence: job.evidence,
    rowLimit: String(job.rowLimit),
    rowsExported: String(job.rowsExported),
    truncated: job.isTruncated,
    sha256: job.sha256,
    bytes: job.bytes === null ? null : String(job.bytes),
    createdAt: job.createdAt.toISOString(),
    startedAt: timeTextOf(job.startedAt),
    finishedAt: timeTextOf(job.finishedAt),
    expiresAt: job.expiresAt.toISOString(),
    errorCode: job.errorCode,
    errorMessage: failure?.message ?? null,
    failureSummary: job.failureSummary,
    retryHint: failure?.retryHint ?? null,
    lastAttempt: job.lastAttempt && attemptRecord(job, job.lastAttempt),
    rerunOf: job.rerunOf,
  }
}

function attemptRecord(job: ExportJob, { at, code, summary }: FailedAttempt) {
  return {
    at: at.toISOString(),
    code,
    message: `${summary} ${exportFailureOf(job, code).retryHint}`,
  }
}

/** Returns the filters as they can be sent again. Only the dashboard accepts `text`, `anyOf` and `not`. */
function filtersOf({ filter, filterWorkspaceId }: ExportJob) {
  const { fromMs, toMs, receivedFromMs, receivedToMs, ...fields } = filter
  const { anyOf, excluded, metadata, textIn: _textIn, ...others } = fields
  const times = { from: fromMs, to: toMs, receivedFrom: receivedFromMs, receivedTo: receivedToMs }
  const given: Record<string, string> = {}
  for (const [name, ms] of Object.entries(times)) if (ms !== null) given[name] = formatUtcMs(ms)
  if (filterWorkspaceId !== null) given['workspaceId'] = filterWorkspaceId
  for (const [name, value] of Object.entries(others)) if (value !== null) given[name] = value
  return {
    ...given,
    ...metadataFields(metadata ?? []),
    ...(anyOf !== null && { anyOf: anyOf.map(exclusionText) }),
    ...(excluded !== null && { not: excluded.map(exclusionText) }),
  }
}

function metadataFields(terms: readonly MetadataTerm[]) {
  const valued = terms.flatMap(({ path, values }): [string, string[]][] =>
    values ? [[path, [...values]]] : [],
  )
  const present = terms.filter(({ values }) => values === null).map(({ path }) => path)
  return {
    ...(valued.length > 0 && { metadata: Object.fromEntries(valued) }),
    ...(present.length > 0 && { hasMetadata: present }),
  }
}

export function preflightRecord(preflight: Preflight): Static<typeof ExportPreflight> {
  return {
    rows: String(preflight.rows),
    stubs: String(preflight.stubs),
    evidence: preflight.evidence,
    isEstimate: preflight.isEstimate,
    estimatedBytes: String(preflight.estimatedBytes),
    rowLimit: String(preflight.rowLimit),
    isCut: preflight.isCut,
    needsRestore: preflight.needsRestore,
  }
}

function timeTextOf(at: Date | null): string | null {
  return at?.toISOString() ?? null
}
