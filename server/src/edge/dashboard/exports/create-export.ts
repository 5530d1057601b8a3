import { defineRoute } from '../../define-route.ts'
import { DashboardExport, DashboardExportInput } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { requestExport } from './visible-export.ts'

/** POST /dashboard/exports: selects the rows. The download creates the file. */
export const createDashboardExport = defineRoute({
  method: 'POST',
  path: '/dashboard/exports',
  member: 'exports.create',
  summary: 'Create an export',
  description:
    'Exports the workspace in `filters.workspaceId`, or all that the member can see. The export contains the events stored at this moment.',
  body: DashboardExportInput,
  errors: ['plan_required', 'not_found', 'conflict'],
  response: {
    201: {
      ...DashboardExport,
      description: 'The new export job. Download it within seven days.',
    },
  },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>) => async (request) =>
    await requestExport(deps, request, request.body),
})
