import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { type ExplorerView, mayChangeView } from '../../../outlet/saved/view.ts'
import { viewStore } from '../../../outlet/saved/view-store.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { ViewQuery, type ViewRecord } from '../../schema/dashboard/views.ts'
import { createStoredReader } from '../stored-input.ts'

export const readStoredQuery = createStoredReader(ViewQuery, {})

/** Returns the view in a path or a body if the member can see it. */
export async function getVisibleView(
  db: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExplorerView> {
  const viewId = parseId<'explorer-view'>(id)
  const view = viewId && (await viewStore.find(db, viewer, viewId))
  if (!view) throw new ApiError('not_found')
  return view
}

/** For a change: throws `insufficient_role` if the member can see the view but not change it. */
export async function getChangeableView(
  trx: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExplorerView> {
  const viewId = parseId<'explorer-view'>(id)
  const view = viewId && (await viewStore.lock(trx, viewer, viewId))
  if (!view) throw new ApiError('not_found')
  if (!mayChangeView(viewer, view)) {
    throw new ApiError('insufficient_role', {
      message: `Your role is ${viewer.role}. Only the view's owner, an OWNER or an ADMIN can change it.`,
    })
  }
  return view
}

export function viewRecord(viewer: Viewer, view: ExplorerView): Static<typeof ViewRecord> {
  const { value, isUsable, unusableFields } = readStoredQuery(view.query)
  const { ownerId, ownerEmail } = view
  return {
    id: view.id,
    name: view.name,
    workspaceId: view.workspaceId,
    visibility: view.visibility,
    query: value,
    isUsable,
    unusableFields,
    owner: ownerId === null || ownerEmail === null ? null : { id: ownerId, email: ownerEmail },
    mayChange: mayChangeView(viewer, view),
    createdAt: view.createdAt.toISOString(),
    updatedAt: view.updatedAt.toISOString(),
  }
}

/** The view as the resource of an audit entry. */
export function viewResource({ id }: Pick<ExplorerView, 'id'>) {
  return { type: 'explorer_view', id }
}
