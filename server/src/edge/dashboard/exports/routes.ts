import { listRoutes } from '../../define-route.ts'
import { cancelDashboardExport } from './cancel-export.ts'
import { createDashboardExport } from './create-export.ts'
import { downloadEvidencePack } from './download-evidence-pack.ts'
import { downloadDashboardExport } from './download-export.ts'
import { getExportCapabilities } from './get-capabilities.ts'
import { getDashboardExport } from './get-export.ts'
import { listDashboardExports } from './list-exports.ts'
import { preflightDashboardExport } from './preflight-export.ts'
import { rerunDashboardExport } from './rerun-export.ts'

export const EXPORTS_ROUTES = listRoutes('Exports', {
  listDashboardExports,
  createDashboardExport,
  getExportCapabilities,
  preflightDashboardExport,
  getDashboardExport,
  downloadDashboardExport,
  downloadEvidencePack,
  rerunDashboardExport,
  cancelDashboardExport,
})
