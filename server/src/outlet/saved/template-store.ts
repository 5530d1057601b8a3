import { COMPANY_BOUNDS } from '../../tenancy/plans.ts'
import { SavedStore } from './saved-store.ts'
import { canSeeTemplate, type ExportTemplate } from './template.ts'

type Row = { body: unknown }
type Content = { body: object }

export const templateStore = new SavedStore<'export-template', ExportTemplate, Row, Content>({
  table: 'export_template',
  max: COMPANY_BOUNDS.exportTemplatesMax,
  noun: 'export templates',
  columnsOf: ({ body }) => ({ body: body && JSON.stringify(body) }),
  toItem: (common, { body }) => ({ ...common, body }),
  canSee: canSeeTemplate,
})
