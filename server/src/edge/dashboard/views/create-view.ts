import { viewStore } from '../../../outlet/saved/view-store.ts'
import { newId } from '../../../platform/id.ts'
import { defineRoute } from '../../define-route.ts'
import { ViewInput, ViewRecord } from '../../schema/dashboard/views.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { validateView } from './view-input.ts'
import { getVisibleView, viewResource, viewRecord } from './view-resource.ts'

/** POST /dashboard/explorer/views */
export const createExplorerView = defineRoute({
  method: 'POST',
  path: '/dashboard/explorer/views',
  member: 'views.manage',
  summary: 'Create a view',
  description: 'Saves an explorer query.',
  body: ViewInput,
  errors: ['not_found', 'conflict'],
  response: { 201: { ...ViewRecord, description: 'The new view.' } },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, body } = request
    const name = readName(body.name)
    const { workspaceId } = await validateView(deps, viewer, body)
    const { visibility, query } = body
    const nowMs = deps.clock()
    const id = newId<'explorer-view'>(nowMs)
    const view = await audited(deps, actorOf(request), async (trx, record) => {
      const { companyId, userId: ownerId } = viewer
      const content = { workspaceId, name, visibility, query }
      await viewStore.insert(trx, { id, companyId, ownerId, ...content, now: new Date(nowMs) })
      record({ action: 'VIEW_CREATED', resource: viewResource({ id }), metadata: content })
      return await getVisibleView(trx, viewer, id)
    })
    return viewRecord(viewer, view)
  },
})
