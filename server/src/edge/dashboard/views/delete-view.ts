import { Type } from 'typebox'
import { viewStore } from '../../../outlet/saved/view-store.ts'
import { defineRoute } from '../../define-route.ts'
import { ViewParams } from '../../schema/dashboard/views.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getChangeableView, viewResource } from './view-resource.ts'

/** DELETE /dashboard/explorer/views/{viewId} */
export const deleteExplorerView = defineRoute({
  method: 'DELETE',
  path: '/dashboard/explorer/views/:viewId',
  member: 'views.manage',
  summary: 'Delete a view',
  description: 'The owner can delete a view. An OWNER or ADMIN can also delete shared views.',
  params: ViewParams,
  response: { 204: Type.Null({ description: 'It is deleted.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    await audited(deps, actorOf(request), async (trx, record) => {
      const view = await getChangeableView(trx, request.viewer, request.params.viewId)
      await viewStore.delete(trx, view)
      const { name, visibility, workspaceId } = view
      record({
        action: 'VIEW_DELETED',
        resource: viewResource(view),
        metadata: { name, visibility, workspaceId },
      })
    })
    return null
  },
})
