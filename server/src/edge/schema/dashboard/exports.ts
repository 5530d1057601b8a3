import { Type } from 'typebox'
import { CADENCES } from '../../../outlet/export/job/export-job.ts'
import { EXPORT_RANGES } from '../../../outlet/explorer/relative-range.ts'
import { NextCursor, Nullable, STRICT, Uuid } from '../common.ts'
import {
  Count,
  DASHBOARD_FILTERS,
  ExportInput,
  ExportQuery,
  ExportRecord,
  Format,
  ExportPreflight,
  Source,
} from '../export.ts'
import { named } from '../named.ts'
import { SAVED_FILTERS } from './views.ts'

const { text, anyOf, not } = SAVED_FILTERS

export const ExportCadence = named(
  'ExportCadence',
  Type.Enum([...CADENCES], { description: 'Whether each day, week or month is exported.' }),
)

const DashboardExportFilters = named(
  'DashboardExportFilters',
  Type.Object(
    {
      ...DASHBOARD_FILTERS,
      range: Type.Optional(
        Type.Enum([...EXPORT_RANGES], {
          description:
            'A relative time range, instead of `from` and `to`. It is resolved when the export is created. `previousMonth` is the previous calendar month in UTC.',
        }),
      ),
      workspaceId: Type.Optional({
        ...Uuid,
        description: 'Only events of this workspace. Default: all that the member can see.',
      }),
      text,
      anyOf,
      not,
    },
    { ...STRICT, description: 'Which events to export.' },
  ),
)

export const DashboardExportQuery = Type.Object(
  {
    ...ExportQuery.properties,
    workspaceId: Type.Optional({
      ...Uuid,
      description: 'Only exports that contain events of this workspace.',
    }),
  },
  STRICT,
)

const { name, ...settings } = ExportInput.properties

/** What a template saves: everything but the name, because a template has its own. */
export const ExportSettings = named(
  'ExportSettings',
  Type.Object(
    {
      ...settings,
      filters: Type.Optional({
        ...DashboardExportFilters,
        description: '`from` and `to`, or `range`, are required unless the source is HOT.',
      }),
      savedExplorerViewId: Type.Optional({
        ...Uuid,
        description:
          'A view whose query is converted to filters. Fields in `filters` override the same fields of the view.',
      }),
    },
    { ...STRICT, description: 'Which events to export, and how.' },
  ),
)

export const DashboardExportInput = named(
  'DashboardExportInput',
  Type.Object(
    { name, ...ExportSettings.properties },
    { ...STRICT, description: 'Which events to export, and how.' },
  ),
)

export const DashboardExport = named(
  'DashboardExport',
  Type.Object(
    {
      ...ExportRecord.properties,
      createdBy: Type.Object(
        {
          kind: Type.Enum(['MEMBER', 'KEY', 'SCHEDULE'], {
            description: 'Whether a member, a key or a schedule did it.',
          }),
          email: Nullable(
            Type.String({
              description:
                'The email address of the member. Null for a key, a schedule or a removed member.',
            }),
          ),
        },
        { ...STRICT, description: 'Who created the export.' },
      ),
      cadence: Nullable({
        ...ExportCadence,
        description:
          'How often the schedule that created the export runs. Null without a schedule.',
      }),
      isStored: Type.Boolean({
        description:
          'Whether the file is stored and can be downloaded as often as needed, as for a schedule.',
      }),
      workspaceIds: Type.Array(Uuid, {
        description: 'The workspaces whose events the file contains, in the order of the file.',
      }),
    },
    { ...STRICT, description: 'An export job.' },
  ),
)

export const DashboardExportPage = Type.Object(
  {
    data: Type.Array(DashboardExport, { description: 'The export jobs, newest first.' }),
    nextCursor: NextCursor,
  },
  { ...STRICT, description: 'A page of export jobs.' },
)

export const DashboardPreflight = Type.Object(
  {
    ...ExportPreflight.properties,
    fitsDownload: Type.Boolean({
      description:
        'Whether the file is probably small enough for a dashboard download. The API has no size limit.',
    }),
  },
  { ...STRICT, description: 'What the export would contain.' },
)

export const ExportCapabilities = Type.Object(
  {
    filteredHot: Type.Boolean({
      description: 'Whether a filtered export of hot events works at the moment.',
    }),
    reason: Nullable(Type.String({ description: "A human-readable reason why it doesn't work." })),
    sources: Type.Array(Source, { description: 'The sources to choose from.' }),
    formats: Type.Array(Format, { description: 'The formats to choose from.' }),
    rowLimit: Nullable({
      ...Count,
      description: 'Rows per export. Null if the plan has no exports.',
    }),
    downloadBytesMax: {
      ...Count,
      description: 'The largest file that can be downloaded in the dashboard, uncompressed.',
    },
    evidencePacks: Type.Boolean({
      description:
        'Whether exports have evidence packs, which requires that this service signs checkpoints.',
    }),
  },
  { ...STRICT, description: 'What the member can export.' },
)
