import { Type } from 'typebox'
import { Name } from '../../dashboard/name-input.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'
import { DashboardExportInput } from './exports.ts'
import { Owner, USABILITY } from './views.ts'

const Body = {
  ...DashboardExportInput,
  description:
    'What `POST /dashboard/exports` takes. A relative `range` is worked out anew at every run.',
}

export const TemplateInput = Type.Object({ name: Name, body: Body }, STRICT)

export const TemplateChange = Type.Object(
  {
    name: Type.Optional(Name),
    body: Type.Optional({ ...DashboardExportInput, description: 'In place of the whole body.' }),
  },
  { ...STRICT, minProperties: 1 },
)

export const TemplateParams = Type.Object({ templateId: Type.String() })

export const TemplateRecord = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    workspaceId: {
      ...Nullable(Uuid),
      description:
        'The one that the filters name: whoever sees it has the template. Null: everybody.',
    },
    body: Body,
    ...USABILITY,
    owner: Owner,
    mayChange: Type.Boolean({ description: 'Whether whoever asks may change and delete it.' }),
    createdAt: DateTime,
    updatedAt: DateTime,
  },
  STRICT,
)

export const TemplateList = Type.Object({ templates: Type.Array(TemplateRecord) }, STRICT)
