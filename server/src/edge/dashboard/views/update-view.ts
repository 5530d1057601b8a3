import { ApiError } from '../../../errors.ts'
import type { ExplorerView } from '../../../outlet/saved/view.ts'
import { viewStore } from '../../../outlet/saved/view-store.ts'
import { visibleWorkspace, type Viewer } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { ViewChange, ViewParams, ViewRecord } from '../../schema/dashboard/views.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { validateView } from './view-input.ts'
import { getChangeableView, getVisibleView, viewResource, viewRecord } from './view-resource.ts'

/** PATCH /dashboard/explorer/views/{viewId} */
export const updateExplorerView = defineRoute({
  method: 'PATCH',
  path: '/dashboard/explorer/views/:viewId',
  member: 'views.manage',
  summary: 'Update a view',
  description: 'The owner can change a view. An OWNER or ADMIN can also change shared views.',
  params: ViewParams,
  body: ViewChange,
  response: ViewRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, params, body } = request
    const { name: named, workspaceId: wanted, visibility, query } = body
    const name = named === undefined ? undefined : readName(named)
    const workspaceId =
      typeof wanted === 'string' ? await visibleWorkspace(deps.db, viewer, wanted) : wanted
    const change = await audited(deps, actorOf(request), async (trx, record) => {
      const view = await getChangeableView(trx, viewer, params.viewId)
      refuseHiding(viewer, view, visibility)
      if (query) {
        const effectiveId = workspaceId === undefined ? view.workspaceId : workspaceId
        await validateView({ ...deps, db: trx }, viewer, { workspaceId: effectiveId, query })
      }
      const changes = {
        ...(name !== undefined && { name }),
        ...(workspaceId !== undefined && { workspaceId }),
        ...(visibility !== undefined && { visibility }),
        ...(query !== undefined && { query }),
      }
      const changed = changedFields(view, changes)
      if (!changed) return view
      await viewStore.update(trx, view, changes, new Date(deps.clock()))
      record({ action: 'VIEW_CHANGED', resource: viewResource(view), metadata: changed })
      return await getVisibleView(trx, viewer, view.id)
    })
    return viewRecord(viewer, change)
  },
})

/** A private view is visible only to its owner, who may no longer be a member. */
function refuseHiding(
  viewer: Viewer,
  { ownerId }: ExplorerView,
  visibility: string | undefined,
): void {
  if (visibility !== 'PRIVATE' || ownerId === viewer.userId) return
  throw new ApiError('insufficient_role', {
    message: 'Only the owner of a view can make it private. Delete it, or save your own view.',
  })
}
