import type { Selectable } from 'kysely'
import { assertId, type CompanyId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Tables } from '../../platform/pg/tables.ts'
import { COMPANY_BOUNDS } from '../../tenancy/plans.ts'
import type { Viewer } from '../../tenancy/viewer.ts'
import { refuseTooManySaved } from './saved-limit-store.ts'
import {
  type ExplorerView,
  canSeeView,
  type ViewId,
  VISIBILITIES,
  type Visibility,
} from './view.ts'

/** The fields that the owner can edit. */
type ViewContent = {
  workspaceId: WorkspaceId | null
  name: string
  visibility: Visibility
  query: object
}

type NewView = ViewContent & { id: ViewId; companyId: CompanyId; ownerId: UserId; now: Date }

/** Call it inside a transaction: it locks the company to count its views. */
export async function insertView(db: Queryable, view: NewView): Promise<void> {
  await refuseTooManySaved(db, 'explorer_view', {
    companyId: view.companyId,
    max: COMPANY_BOUNDS.viewsMax,
    noun: 'saved views',
  })
  await db
    .insertInto('explorer_view')
    .values({
      company_id: view.companyId,
      id: view.id,
      workspace_id: view.workspaceId,
      owner_id: view.ownerId,
      name: view.name,
      visibility: view.visibility,
      query: JSON.stringify(view.query),
      created_at: view.now,
      updated_at: view.now,
    })
    .execute()
}

/** The views a member can see, sorted by name. */
export async function listViews(db: Queryable, viewer: Viewer): Promise<ExplorerView[]> {
  const rows = await viewsOf(db, viewer.companyId)
    .orderBy('v.name')
    .orderBy('v.id')
    .limit(COMPANY_BOUNDS.viewsMax)
    .execute()
  return rows.map(toView).filter((view) => canSeeView(viewer, view))
}

/** Returns null if the view doesn't exist or the member can't see it. */
export async function findView(
  db: Queryable,
  viewer: Viewer,
  id: ViewId,
): Promise<ExplorerView | null> {
  const row = await viewsOf(db, viewer.companyId).where('v.id', '=', id).executeTakeFirst()
  const view = row && toView(row)
  return view && canSeeView(viewer, view) ? view : null
}

/** Like `findView`, but locks the view until the transaction ends. */
export async function lockView(
  db: Queryable,
  viewer: Viewer,
  id: ViewId,
): Promise<ExplorerView | null> {
  await db
    .selectFrom('explorer_view')
    .select('id')
    .where('company_id', '=', viewer.companyId)
    .where('id', '=', id)
    .forUpdate()
    .execute()
  return await findView(db, viewer, id)
}

function viewsOf(db: Queryable, companyId: CompanyId) {
  return db
    .selectFrom('explorer_view as v')
    .leftJoin('app_user as u', 'u.id', 'v.owner_id')
    .selectAll('v')
    .select('u.email as owner_email')
    .where('v.company_id', '=', companyId)
}

type ViewKey = Pick<ExplorerView, 'companyId' | 'id'>

export async function updateView(
  db: Queryable,
  { companyId, id }: ViewKey,
  { workspaceId, name, visibility, query }: Partial<ViewContent>,
  now: Date,
): Promise<void> {
  await db
    .updateTable('explorer_view')
    .set({
      ...(workspaceId !== undefined && { workspace_id: workspaceId }),
      ...(name !== undefined && { name }),
      ...(visibility !== undefined && { visibility }),
      ...(query !== undefined && { query: JSON.stringify(query) }),
      updated_at: now,
    })
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .execute()
}

export async function deleteView(db: Queryable, { companyId, id }: ViewKey): Promise<void> {
  await db
    .deleteFrom('explorer_view')
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .execute()
}

type ViewRow = Selectable<Tables['explorer_view']> & { owner_email: string | null }

function toView(row: ViewRow): ExplorerView {
  return {
    id: assertId(row.id),
    companyId: assertId(row.company_id),
    workspaceId: row.workspace_id === null ? null : assertId(row.workspace_id),
    ownerId: row.owner_id === null ? null : assertId(row.owner_id),
    ownerEmail: row.owner_email,
    name: row.name,
    // An unknown visibility is treated as PRIVATE, so that others don't see the view.
    visibility: VISIBILITIES.find((known) => known === row.visibility) ?? 'PRIVATE',
    query: row.query,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
