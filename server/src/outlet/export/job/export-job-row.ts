import assert from 'node:assert/strict'
import type { Selectable } from 'kysely'
import { type EventFilter, NO_FILTER } from '../../../ledger/filter/event-filter.ts'
import {
  type FieldValue,
  isExcludedField,
  orderExclusions,
  orderValues,
} from '../../../ledger/filter/exclusion.ts'
import { type MetadataTerm, orderTerms } from '../../../ledger/search/metadata-term.ts'
import { assertId, type Id, type WorkspaceId } from '../../../platform/id.ts'
import type { Tables } from '../../../platform/pg/tables.ts'
import {
  CADENCES,
  EXPORT_EVIDENCE,
  EXPORT_FORMATS,
  EXPORT_SOURCES,
  EXPORT_STATUSES,
  type ExportEvidence,
  type ExportJob,
  type ExportRange,
  type FailedAttempt,
  isExportErrorCode,
  isOpen,
  type SeqSpan,
} from './export-job.ts'

/** Converts a row of the table. Throws if it has a value that no version of Annals writes. */
export function toJob(row: Row): ExportJob {
  return {
    id: assertId(row.id),
    companyId: assertId(row.company_id),
    workspaceId: row.workspace_id === null ? null : assertId(row.workspace_id),
    createdBy: row.created_by === null ? null : assertId(row.created_by),
    name: row.name,
    cadence: row.cadence === null ? null : oneOf(CADENCES, row.cadence),
    source: oneOf(EXPORT_SOURCES, row.source),
    format: oneOf(EXPORT_FORMATS, row.format),
    ...readFilters(row.filters),
    ranges: readRanges(row.ranges),
    spans: readSpans(row.ranges),
    rowLimit: row.row_limit,
    status: oneOf(EXPORT_STATUSES, row.status),
    rowsExported: row.rows_exported,
    isTruncated: row.is_truncated,
    sha256: row.sha256?.toString('hex') ?? null,
    bytes: row.bytes,
    ...readFailure(row),
    lastAttempt: readLastAttempt(row),
    storedParts: row.stored_at === null ? null : row.parts_max,
    rerunOf: row.rerun_of === null ? null : assertId(row.rerun_of),
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    expiresAt: row.expires_at,
  }
}

type Row = Selectable<Tables['export_job']>

/** During a rolling deployment, the previous version stores temporary errors here, in open jobs too. */
function readFailure(row: Row): Pick<ExportJob, 'errorCode' | 'failureSummary'> {
  if (isOpen(oneOf(EXPORT_STATUSES, row.status))) return { errorCode: null, failureSummary: null }
  const { error_code: code, failure_summary: failureSummary } = row
  return { errorCode: code !== null && isExportErrorCode(code) ? code : null, failureSummary }
}

function readLastAttempt(row: Row): FailedAttempt | null {
  const { last_attempt_at: at, last_attempt_code: code, last_attempt_summary: summary } = row
  if (at === null || code === null || summary === null || !isExportErrorCode(code)) return null
  return { at, code, summary }
}

/** Throws if a column has a value that no version of Annals writes. */
export function oneOf<const T extends string>(known: readonly T[], text: string): T {
  const found = known.find((value) => value === text)
  assert(found !== undefined, `a job of ours has none of ${known.join(', ')}`)
  return found
}

type StoredFilters = {
  filter: EventFilter
  filterWorkspaceId: WorkspaceId | null
  evidence: ExportEvidence
}

/**
 * The filters as JSON, for the table's `filters` column. Those that the previous version doesn't know are missing
 * if they are not used, because it refuses to read jobs with them. For the same reason, the evidence is stored
 * here: a version that ignored it would write a file without stubs. The time of its snapshot is stored next to it.
 */
export function writeFilters({
  filter,
  filterWorkspaceId,
  evidence,
  snapshotAtMs,
}: StoredFilters & Pick<ExportJob, 'snapshotAtMs'>): string {
  const { receivedFromMs, receivedToMs, anyOf, actorRole, metadata, ...known } = filter
  const { textIn: _textIn, ...others } = known
  return JSON.stringify({
    ...others,
    ...(receivedFromMs !== null && { receivedFromMs }),
    ...(receivedToMs !== null && { receivedToMs }),
    ...(anyOf && { anyOf }),
    ...(actorRole !== null && { actorRole }),
    ...(metadata && { metadata }),
    ...(evidence !== 'NONE' && { evidence }),
    ...(snapshotAtMs !== null && { snapshotAtMs }),
    workspaceId: filterWorkspaceId,
  })
}

const { textIn: _textIn, ...STORED_FILTER } = NO_FILTER
const OTHER_NAMES = ['workspaceId', 'evidence', 'snapshotAtMs']
const FILTER_NAMES = new Set([...Object.keys(STORED_FILTER), ...OTHER_NAMES])

/** Throws on unknown names: ignoring a filter would export more rows than requested. */
export function readFilters(json: unknown): StoredFilters & Pick<ExportJob, 'snapshotAtMs'> {
  const stored = readObject(json)
  for (const name of Object.keys(stored)) assert(FILTER_NAMES.has(name), `no filter is ${name}`)
  // Field by field, so that a new filter that isn't read here fails to compile.
  const filter: EventFilter = {
    fromMs: readMs(stored['fromMs']),
    toMs: readMs(stored['toMs']),
    receivedFromMs: readMs(stored['receivedFromMs']),
    receivedToMs: readMs(stored['receivedToMs']),
    category: readText(stored['category']),
    action: readText(stored['action']),
    projectId: readId(stored['projectId']),
    actorId: readText(stored['actorId']),
    actorEmail: readText(stored['actorEmail']),
    resourceType: readText(stored['resourceType']),
    resourceId: readText(stored['resourceId']),
    traceId: readText(stored['traceId']),
    actorRole: readText(stored['actorRole']),
    metadata: readTerms(stored['metadata']),
    text: readText(stored['text']),
    textIn: 'all',
    anyOf: readValues(stored['anyOf'], orderValues),
    excluded: readValues(stored['excluded'], orderExclusions),
  }
  const evidence = oneOf(EXPORT_EVIDENCE, readText(stored['evidence']) ?? 'NONE')
  return {
    filter,
    filterWorkspaceId: readId(stored['workspaceId']),
    evidence,
    snapshotAtMs: readMs(stored['snapshotAtMs']),
  }
}

function readValues<T>(json: unknown, order: (values: readonly FieldValue[]) => T): T | null {
  if (json === null || json === undefined) return null
  assert(Array.isArray(json), 'values are a list')
  return order(json.map(readValue))
}

function readValue(json: unknown): FieldValue {
  const { field, value } = readObject(json)
  assert(isExcludedField(field) && typeof value === 'string', 'a value belongs to a field')
  return { field, value: field === 'projectId' ? assertId(value) : value }
}

function readTerms(json: unknown): readonly MetadataTerm[] | null {
  if (json === null || json === undefined) return null
  assert(Array.isArray(json), 'terms are a list')
  return orderTerms(json.map(readTerm))
}

function readTerm(json: unknown): MetadataTerm {
  const { path, values } = readObject(json)
  assert(typeof path === 'string', 'a term has a path')
  if (values === null) return { path, values }
  assert(Array.isArray(values), 'the values of a term are a list')
  const texts = values.filter((value) => typeof value === 'string')
  assert(texts.length === values.length && texts.length > 0, 'the values of a term are texts')
  return { path, values: texts }
}

/**
 * The ranges as JSON, for the table's `ranges` column. Once the job has succeeded, they include the spans, which
 * the previous version ignores.
 */
export function writeRanges(
  ranges: readonly ExportRange[],
  spans: readonly (SeqSpan | null)[] | null,
): string {
  return JSON.stringify(
    ranges.map(({ workspaceId, fromSeq, toSeq }, nth) => ({
      workspaceId,
      fromSeq,
      toSeq,
      ...(spans && (spans[nth] ?? { firstSeq: null, lastSeq: null })),
    })),
  )
}

function readSpans(json: unknown): (SeqSpan | null)[] | null {
  assert(Array.isArray(json), 'ranges are a list')
  const items = json.map(readObject)
  if (items.some(({ firstSeq }) => firstSeq === undefined)) return null
  return items.map(({ firstSeq, lastSeq }) => {
    if (firstSeq === null && lastSeq === null) return null
    assert(isSeq(firstSeq) && isSeq(lastSeq) && firstSeq <= lastSeq, 'a span has two ends')
    return { firstSeq, lastSeq }
  })
}

export function readRanges(json: unknown): ExportRange[] {
  assert(Array.isArray(json), 'ranges are a list')
  return json.map((item: unknown) => {
    const { workspaceId, fromSeq, toSeq } = readObject(item)
    assert(typeof workspaceId === 'string', 'a range names its workspace')
    assert(isSeq(fromSeq) && typeof toSeq === 'number', 'a range has two ends')
    assert(isSeq(toSeq + 1) && fromSeq <= toSeq + 1, 'a range does not end before it starts')
    return { workspaceId: assertId(workspaceId), fromSeq, toSeq }
  })
}

function readObject(json: unknown): Partial<Record<string, unknown>> {
  assert(typeof json === 'object' && json !== null && !Array.isArray(json), 'this is an object')
  return { ...json }
}

function readText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  assert(typeof value === 'string', 'a filter is a text')
  return value
}

function readId<Name extends string>(value: unknown): Id<Name> | null {
  const text = readText(value)
  return text === null ? null : assertId(text)
}

function readMs(value: unknown): number | null {
  if (value === null || value === undefined) return null
  assert(Number.isSafeInteger(value) && typeof value === 'number', 'a time is a whole number')
  return value
}

function isSeq(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}
