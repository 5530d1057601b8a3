import { Type } from 'typebox'
import {
  EXPORT_FAILURES,
  EXPORT_FORMATS,
  EXPORT_SOURCES,
  EXPORT_STATUSES,
} from '../../outlet/export/export-job.ts'
import { DateTime, FilterText, KEY_ERRORS, Nullable, STRICT, Uuid } from './common.ts'

/** Errors that every route with an export in its path can return. */
export const EXPORT_ERRORS = [...KEY_ERRORS, 'invalid_request', 'not_found'] as const

/** A path can contain any text. Text that isn't an id of the caller's gets a 404. */
export const ExportParams = Type.Object({ jobId: Type.String() })

const Status = Type.Enum([...EXPORT_STATUSES])
export const Source = Type.Enum([...EXPORT_SOURCES], {
  description: 'HOT: what the query shows. ARCHIVED: what is older. Or both.',
})
export const Format = Type.Enum([...EXPORT_FORMATS])
const Count = Type.String({ pattern: String.raw`^\d+$` })

export const ExportFilters = Type.Object(
  {
    from: Type.Optional({ ...DateTime, description: 'Inclusive.' }),
    to: Type.Optional({ ...DateTime, description: 'Exclusive.' }),
    category: Type.Optional(FilterText),
    action: Type.Optional(FilterText),
    workspaceId: Type.Optional({
      ...Uuid,
      description: 'One of the company’s. A workspace key may name its own only.',
    }),
    projectId: Type.Optional(Uuid),
    actorId: Type.Optional(FilterText),
    actorEmail: Type.Optional(FilterText),
    resourceType: Type.Optional(FilterText),
    resourceId: Type.Optional(FilterText),
  },
  STRICT,
)

export const ExportInput = Type.Object(
  {
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
        description: 'Rows at most; the plan may allow fewer.',
      }),
    ),
  },
  STRICT,
)

export const CreatedExport = Type.Object({ jobId: Uuid, status: Status }, STRICT)

export const ExportStatusAnswer = Type.Object({ id: Uuid, status: Status }, STRICT)

/** Includes the filters that only the dashboard accepts. */
const StoredFilters = Type.Object(
  {
    ...ExportFilters.properties,
    traceId: Type.Optional(Type.String({ description: 'Of an export made in the dashboard.' })),
    text: Type.Optional(
      Type.String({
        description:
          'Of an export made in the dashboard: contained in category, action, actor id, actor e-mail, resource type or resource id.',
      }),
    ),
    not: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Of an export made in the dashboard: values that were left out, such as `category:billing`.',
      }),
    ),
  },
  STRICT,
)

export const ExportRecord = Type.Object(
  {
    id: Uuid,
    status: Status,
    source: Source,
    format: Format,
    filters: StoredFilters,
    rowLimit: { ...Count, description: 'The smaller of `limit` and what the plan allows.' },
    rowsExported: { ...Count, description: 'How far the furthest download has come.' },
    truncated: Nullable(
      Type.Boolean({ description: 'Whether `rowLimit` cut rows; null until it succeeded.' }),
    ),
    sha256: Nullable(Type.String({ description: 'Of the file, uncompressed.' })),
    bytes: Nullable({ ...Count, description: 'Of the file, uncompressed.' }),
    createdAt: DateTime,
    startedAt: Nullable({ ...DateTime, description: 'When a download was first opened.' }),
    finishedAt: Nullable(DateTime),
    expiresAt: { ...DateTime, description: 'Until then a download must have come to its end.' },
    errorCode: Nullable(Type.Enum(Object.keys(EXPORT_FAILURES))),
    errorMessage: Nullable(Type.String()),
    failureSummary: Nullable(Type.String({ description: 'What failed, and where.' })),
    retryHint: Nullable(Type.String({ description: 'What to do about it.' })),
    rerunOf: Nullable({
      ...Uuid,
      description: 'The job whose rows these are; it may be gone by now.',
    }),
  },
  STRICT,
)

export const ExportPage = Type.Object(
  { data: Type.Array(ExportRecord), nextCursor: Nullable(Type.String()) },
  STRICT,
)

export const ExportQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'Exports per page.' }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 512, description: 'The previous page’s `nextCursor`.' }),
    ),
    status: Type.Optional({ ...Status, description: 'Those in this state only.' }),
  },
  STRICT,
)

export const PreflightAnswer = Type.Object(
  {
    rows: { ...Count, description: 'How many rows the export would have.' },
    isEstimate: Type.Boolean({
      description:
        'Whether `rows` is more a guess than a count: what filters pick from archived data is known only when it is read, and counting takes a few seconds at most.',
    }),
    estimatedBytes: {
      ...Count,
      description:
        'Of the file, uncompressed, by a hundred hot rows from all over it. Archived rows are not read for it: without hot ones it is a rough guess.',
    },
    rowLimit: Count,
    isCut: Type.Boolean({ description: 'Whether there are more rows than `rowLimit`.' }),
    needsRestore: Type.Boolean({
      description: 'Whether archived data has to be brought back before a download.',
    }),
  },
  STRICT,
)
