import { listRoutes } from '../../define-route.ts'
import { createExportTemplate } from './create-template.ts'
import { deleteExportTemplate } from './delete-template.ts'
import { listExportTemplates } from './list-templates.ts'
import { runExportTemplate } from './run-template.ts'
import { scheduleExportTemplate } from './schedule-template.ts'
import { unscheduleExportTemplate } from './unschedule-template.ts'
import { updateExportTemplate } from './update-template.ts'

export const TEMPLATES_ROUTES = listRoutes('Templates', {
  listExportTemplates,
  createExportTemplate,
  updateExportTemplate,
  deleteExportTemplate,
  runExportTemplate,
  scheduleExportTemplate,
  unscheduleExportTemplate,
})
