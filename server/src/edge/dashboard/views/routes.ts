import { listRoutes } from '../../define-route.ts'
import { createExplorerView } from './create-view.ts'
import { deleteExplorerView } from './delete-view.ts'
import { listExplorerViews } from './list-views.ts'
import { runExplorerView } from './run-view.ts'
import { updateExplorerView } from './update-view.ts'

export const VIEWS_ROUTES = listRoutes('Views', {
  listExplorerViews,
  createExplorerView,
  updateExplorerView,
  deleteExplorerView,
  runExplorerView,
})
