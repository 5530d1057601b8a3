import { Type } from 'typebox'
import { EXPORT_RANGES } from '../../../outlet/console/relative-range.ts'
import { EXPORT_FORMATS, EXPORT_SOURCES } from '../../../outlet/export/export-job.ts'
import { Nullable, STRICT, Uuid } from '../common.ts'
import {
  ExportFilters,
  ExportInput,
  ExportQuery,
  ExportRecord,
  PreflightAnswer,
} from '../export.ts'
import { SAVED_FILTERS } from './views.ts'

const Count = Type.String({ pattern: String.raw`^\d+$` })

const { text, traceId, not } = SAVED_FILTERS

export const DashboardExportFilters = Type.Object(
  {
    ...ExportFilters.properties,
    range: Type.Optional(
      Type.Enum([...EXPORT_RANGES], {
        description:
          'Becomes `from` and `to` when the export is made, and stands instead of them. `previousMonth` is the calendar month before this one, in UTC.',
      }),
    ),
    workspaceId: Type.Optional({ ...Uuid, description: 'All that the member sees by default.' }),
    traceId,
    text,
    not,
  },
  STRICT,
)

export const DashboardExportQuery = Type.Object(
  {
    ...ExportQuery.properties,
    workspaceId: Type.Optional({
      ...Uuid,
      description: 'Those made for this workspace, or with rows of it among others.',
    }),
  },
  STRICT,
)

export const DashboardExportInput = Type.Object(
  {
    ...ExportInput.properties,
    filters: Type.Optional({
      ...DashboardExportFilters,
      description: '`from` and `to`, or a range, are required unless the source is HOT.',
    }),
    savedExplorerViewId: Type.Optional({
      ...Uuid,
      description:
        'A view whose query becomes filters. A field of `filters` wins over the same field of the view.',
    }),
  },
  STRICT,
)

export const DashboardExport = Type.Object(
  {
    ...ExportRecord.properties,
    createdBy: Type.Object(
      {
        kind: Type.Enum(['MEMBER', 'KEY']),
        email: Nullable(
          Type.String({ description: 'Null for a key, and when the member is gone.' }),
        ),
      },
      STRICT,
    ),
    workspaceIds: Type.Array(Uuid, { description: 'Whose events it holds, in its order.' }),
  },
  STRICT,
)

export const DashboardExportPage = Type.Object(
  { data: Type.Array(DashboardExport), nextCursor: Nullable(Type.String()) },
  STRICT,
)

export const DashboardPreflight = Type.Object(
  {
    ...PreflightAnswer.properties,
    fitsDownload: Type.Boolean({
      description:
        'Whether the dashboard would send it, as far as is known; the API sends any size.',
    }),
  },
  STRICT,
)

export const ExportCapabilities = Type.Object(
  {
    filteredHot: Type.Boolean({
      description: 'Whether a filtered export of hot events works now. It was tried just now.',
    }),
    reason: Nullable(Type.String({ description: 'Why not, as a sentence.' })),
    sources: Type.Array(Type.Enum([...EXPORT_SOURCES])),
    formats: Type.Array(Type.Enum([...EXPORT_FORMATS])),
    rowLimit: Nullable({ ...Count, description: 'Of one export; null: the plan has no exports.' }),
    downloadBytesMax: {
      ...Count,
      description: 'What a download in the dashboard has at most, uncompressed.',
    },
  },
  STRICT,
)
