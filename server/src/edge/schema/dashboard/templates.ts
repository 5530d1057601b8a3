import { Type } from 'typebox'
import { Name } from '../../name-input.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'
import { named } from '../named.ts'
import { ExportCadence, ExportSettings } from './exports.ts'
import { MayChange, Owner, USABILITY } from './views.ts'

const Body = {
  ...ExportSettings,
  description:
    'The body for `POST /dashboard/exports`, without a name. A relative `range` is resolved at every run.',
}

export const TemplateInput = Type.Object(
  { name: { ...Name, description: 'The name of the template.' }, body: Body },
  { ...STRICT, description: 'The new template.' },
)

export const TemplateChange = Type.Object(
  {
    name: Type.Optional({ ...Name, description: 'The new name.' }),
    body: Type.Optional({ ...ExportSettings, description: 'Replaces the whole body.' }),
  },
  { ...STRICT, minProperties: 1, description: 'What to change.' },
)

export const TemplateParams = Type.Object({ templateId: Type.String() })

const Schedule = named(
  'ExportSchedule',
  Type.Object(
    {
      cadence: ExportCadence,
      nextRunAt: { ...DateTime, description: 'When the next export is created.' },
      problem: Nullable(
        Type.String({
          description:
            'Why the last period could not be exported yet, as a sentence. Null if there was no problem.',
        }),
      ),
    },
    { ...STRICT, description: 'When a template is exported.' },
  ),
)

export const ScheduleInput = Type.Object(
  { cadence: ExportCadence },
  { ...STRICT, description: 'The schedule.' },
)

export const TemplateRecord = named(
  'ExportTemplate',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the template.' },
      name: Type.String({ description: 'The name of the template.' }),
      workspaceId: {
        ...Nullable(Uuid),
        description:
          'The workspace in the filters. Members who can see it can use the template. Null: all members can.',
      },
      body: Body,
      ...USABILITY,
      schedule: {
        ...Nullable(Schedule),
        description: 'When the template is exported. Null if it has no schedule.',
      },
      owner: Owner,
      mayChange: MayChange,
      createdAt: { ...DateTime, description: 'When the template was created.' },
      updatedAt: { ...DateTime, description: 'When the template last changed.' },
    },
    { ...STRICT, description: 'Saved export settings.' },
  ),
)

export const TemplateList = Type.Object(
  { templates: Type.Array(TemplateRecord, { description: 'The templates.' }) },
  { ...STRICT, description: 'The templates that the member can use.' },
)
