import { Type } from 'typebox'
import {
  EXPORT_EVIDENCE,
  EXPORT_FAILURES,
  EXPORT_FORMATS,
  EXPORT_SOURCES,
  EXPORT_STATUSES,
} from '../../outlet/export/job/export-job.ts'
import {
  CursorQuery,
  DateTime,
  NextCursor,
  Nullable,
  RECEIVED_RANGE,
  STRICT,
  TIME_RANGE,
  TraceId,
  Uuid,
} from './common.ts'
import { FIELD_FILTERS } from './event.ts'
import { Name } from '../name-input.ts'
import { named } from './named.ts'
import { SEARCH_FIELDS, SearchText } from './search.ts'

/** A path can contain any text. Text that isn't an id of the caller's gets a 404. */
export const ExportParams = Type.Object({ jobId: Type.String() })

export const JobId = { ...Uuid, description: 'The ID of the export job.' }
const Status = named(
  'ExportStatus',
  Type.Enum([...EXPORT_STATUSES], {
    description:
      'PENDING: no download was opened yet. RUNNING: a download was opened, but none is complete. SUCCEEDED, FAILED and CANCELED are final.',
  }),
)
export const Source = named(
  'ExportSource',
  Type.Enum([...EXPORT_SOURCES], {
    description: 'HOT: events that queries find. ARCHIVED: older events. HOT_AND_ARCHIVED: both.',
  }),
)
export const Format = named(
  'ExportFormat',
  Type.Enum([...EXPORT_FORMATS], { description: 'The file format.' }),
)
export const RequestedEvidence = named(
  'RequestedEvidence',
  Type.Enum(['NONE', 'COMPLETE'], {
    default: 'NONE',
    description:
      "COMPLETE (JSONL only): between the rows, the file has a stub for each event that the filters skip, so that a verifier sees that no matching row is missing. Stubs count toward the limits: if there are more rows and stubs than allowed, the request is refused with 400. Filters by actor, resource, metadata or text can't be proven this way: the evidence of the job is then MEMBERSHIP, and the file has no stubs.",
  }),
)
export const Evidence = named(
  'ExportEvidence',
  Type.Enum([...EXPORT_EVIDENCE], {
    description:
      'What the file proves. NONE: no evidence was requested. COMPLETE: with its stubs, no matching row is missing. MEMBERSHIP: COMPLETE was requested, but the filters use fields that stubs do not have, so the file has no stubs.',
  }),
)
export const Count = Type.String({ pattern: String.raw`^\d+$` })

const ExportFilters = named(
  'ExportFilters',
  Type.Object(
    {
      ...TIME_RANGE,
      ...RECEIVED_RANGE,
      ...FIELD_FILTERS,
      ...SEARCH_FIELDS,
      traceId: Type.Optional({ ...TraceId, description: 'Only events with this trace ID.' }),
      q: Type.Optional(SearchText),
      workspaceId: Type.Optional({
        ...Uuid,
        description: 'Only events of this workspace. A workspace key can only name its own.',
      }),
    },
    { ...STRICT, description: 'Which events to export. Default: all.' },
  ),
)

export const ExportInput = named(
  'ExportInput',
  Type.Object(
    {
      name: Type.Optional({
        ...Name,
        description: 'A name for people, as a single line, shown in lists and in the file name.',
      }),
      source: Source,
      format: Format,
      filters: Type.Optional({
        ...ExportFilters,
        description: '`from` and `to` are required unless the source is HOT.',
      }),
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'The maximum number of rows. The plan may allow fewer.',
        }),
      ),
      evidence: Type.Optional(RequestedEvidence),
    },
    { ...STRICT, description: 'Which events to export, and how.' },
  ),
)

export const CreatedExport = named(
  'CreatedExport',
  Type.Object(
    { jobId: JobId, status: Status },
    { ...STRICT, description: 'The new export job. Download it within seven days.' },
  ),
)

export const ExportStatusResult = named(
  'ExportStatusResult',
  Type.Object(
    { id: JobId, status: Status },
    { ...STRICT, description: 'The status of the export job after the request.' },
  ),
)

/** The dashboard calls it `text`, and so do the jobs of both. */
const { q: _q, ...filtersWithoutQ } = ExportFilters.properties
export const DASHBOARD_FILTERS = filtersWithoutQ

/** Includes the filters that only the dashboard accepts. */
export const StoredFilters = named(
  'ExportJobFilters',
  Type.Object(
    {
      ...DASHBOARD_FILTERS,
      text: Type.Optional(
        Type.String({ description: 'Only events with this text: the `q` of the request.' }),
      ),
      anyOf: Type.Optional(
        Type.Array(Type.String(), {
          description:
            'Set in the dashboard: several values per field, such as `category:billing`, of which an event must have one.',
        }),
      ),
      not: Type.Optional(
        Type.Array(Type.String(), {
          description: 'Set in the dashboard: excluded values, such as `category:billing`.',
        }),
      ),
    },
    { ...STRICT, description: 'The filters of the export job.' },
  ),
)

const ExportAttempt = named(
  'ExportAttempt',
  Type.Object(
    {
      at: { ...DateTime, description: 'When the problem occurred.' },
      code: Type.Enum(Object.keys(EXPORT_FAILURES), {
        description: 'What kind of problem it was: `storage_unavailable` or `download_too_large`.',
      }),
      message: Type.String({ description: 'What happened, and what to do about it.' }),
    },
    { ...STRICT, description: 'A problem that left the export job open.' },
  ),
)

export const ExportRecord = named(
  'ExportJob',
  Type.Object(
    {
      id: JobId,
      name: Nullable(Type.String({ description: 'The name of the export. Null if it has none.' })),
      status: Status,
      source: Source,
      format: Format,
      filters: StoredFilters,
      evidence: Evidence,
      rowLimit: { ...Count, description: 'The smaller of `limit` and the limit of the plan.' },
      rowsExported: { ...Count, description: 'The rows that the furthest download has sent.' },
      truncated: Nullable(
        Type.Boolean({
          description: 'Whether `rowLimit` cut off rows. Null until the job has succeeded.',
        }),
      ),
      sha256: Nullable(
        Type.String({ description: 'The SHA-256 of the uncompressed file, in hexadecimal.' }),
      ),
      bytes: Nullable({ ...Count, description: 'The size of the uncompressed file.' }),
      createdAt: { ...DateTime, description: 'When the job was created.' },
      startedAt: Nullable({ ...DateTime, description: 'When a download was first opened.' }),
      finishedAt: Nullable({ ...DateTime, description: 'When the job reached its final status.' }),
      expiresAt: {
        ...DateTime,
        description: 'If no download is complete by then, the job fails.',
      },
      errorCode: Nullable(
        Type.Enum(Object.keys(EXPORT_FAILURES), {
          description:
            'Why the job failed. This field and the next three are null unless the job failed or was canceled.',
        }),
      ),
      errorMessage: Nullable(Type.String({ description: 'A human-readable error message.' })),
      failureSummary: Nullable(Type.String({ description: 'What failed, and where.' })),
      retryHint: Nullable(Type.String({ description: 'What to do about the failure.' })),
      lastAttempt: Nullable({
        ...ExportAttempt,
        description:
          'The last problem that left the job open, such as an unavailable archive storage. Null if there was none, and once the job has succeeded.',
      }),
      rerunOf: Nullable({
        ...Uuid,
        description: 'The job that this one repeats. It may no longer exist.',
      }),
    },
    { ...STRICT, description: 'An export job.' },
  ),
)

export const ExportPage = named(
  'ExportPage',
  Type.Object(
    {
      data: Type.Array(ExportRecord, { description: 'The export jobs, newest first.' }),
      nextCursor: NextCursor,
    },
    { ...STRICT, description: 'A page of export jobs.' },
  ),
)

export const ExportQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        default: 50,
        description: 'The maximum number of export jobs per page.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
    status: Type.Optional({ ...Status, description: 'Only export jobs with this status.' }),
  },
  STRICT,
)

export const ExportPreflight = named(
  'ExportPreflight',
  Type.Object(
    {
      rows: { ...Count, description: 'How many rows match the filters.' },
      stubs: {
        ...Count,
        description:
          'How many stubs the file has in addition. 0 unless `evidence` is COMPLETE. The sum of `rows` and `stubs` is exact.',
      },
      evidence: Evidence,
      isEstimate: Type.Boolean({
        description:
          'Whether `rows` is an estimate. Filters on archived events can only be counted by reading them, and counting stops after a few seconds.',
      }),
      estimatedBytes: {
        ...Count,
        description:
          'The estimated size of the uncompressed file, based on a sample of 100 hot rows. If there are no hot rows, the estimate is rough.',
      },
      rowLimit: { ...Count, description: 'The smaller of `limit` and the limit of the plan.' },
      isCut: Type.Boolean({
        description:
          'Whether there are more rows, including stubs, than `rowLimit`. A complete export is then refused.',
      }),
      needsRestore: Type.Boolean({
        description: 'Whether archived data must be restored before a download.',
      }),
    },
    { ...STRICT, description: 'What an export would contain.' },
  ),
)
