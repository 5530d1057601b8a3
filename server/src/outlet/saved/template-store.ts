import type { Selectable } from 'kysely'
import { assertId, type CompanyId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Tables } from '../../platform/pg/tables.ts'
import { COMPANY_BOUNDS } from '../../tenancy/plans.ts'
import type { Viewer } from '../../tenancy/viewer.ts'
import { refuseTooManySaved } from './saved-limit-store.ts'
import { type ExportTemplate, canSeeTemplate, type TemplateId } from './template.ts'

/** The fields that the owner can edit. */
type TemplateContent = {
  workspaceId: WorkspaceId | null
  name: string
  body: object
}

type NewTemplate = TemplateContent & {
  id: TemplateId
  companyId: CompanyId
  ownerId: UserId
  now: Date
}

/** Call it inside a transaction: it locks the company to count its templates. */
export async function insertTemplate(db: Queryable, template: NewTemplate): Promise<void> {
  await refuseTooManySaved(db, 'export_template', {
    companyId: template.companyId,
    max: COMPANY_BOUNDS.exportTemplatesMax,
    noun: 'export templates',
  })
  await db
    .insertInto('export_template')
    .values({
      company_id: template.companyId,
      id: template.id,
      workspace_id: template.workspaceId,
      owner_id: template.ownerId,
      name: template.name,
      body: JSON.stringify(template.body),
      created_at: template.now,
      updated_at: template.now,
    })
    .execute()
}

/** The templates a member can see, sorted by name. */
export async function listTemplates(db: Queryable, viewer: Viewer): Promise<ExportTemplate[]> {
  const rows = await templatesOf(db, viewer.companyId)
    .orderBy('t.name')
    .orderBy('t.id')
    .limit(COMPANY_BOUNDS.exportTemplatesMax)
    .execute()
  return rows.map(toTemplate).filter((template) => canSeeTemplate(viewer, template))
}

/** Returns null if the template doesn't exist or the member can't see it. */
export async function findTemplate(
  db: Queryable,
  viewer: Viewer,
  id: TemplateId,
): Promise<ExportTemplate | null> {
  const row = await templatesOf(db, viewer.companyId).where('t.id', '=', id).executeTakeFirst()
  const template = row && toTemplate(row)
  return template && canSeeTemplate(viewer, template) ? template : null
}

/** Like `findTemplate`, but locks the template until the transaction ends. */
export async function lockTemplate(
  db: Queryable,
  viewer: Viewer,
  id: TemplateId,
): Promise<ExportTemplate | null> {
  await db
    .selectFrom('export_template')
    .select('id')
    .where('company_id', '=', viewer.companyId)
    .where('id', '=', id)
    .forUpdate()
    .execute()
  return await findTemplate(db, viewer, id)
}

function templatesOf(db: Queryable, companyId: CompanyId) {
  return db
    .selectFrom('export_template as t')
    .leftJoin('app_user as u', 'u.id', 't.owner_id')
    .selectAll('t')
    .select('u.email as owner_email')
    .where('t.company_id', '=', companyId)
}

type TemplateKey = Pick<ExportTemplate, 'companyId' | 'id'>

export async function updateTemplate(
  db: Queryable,
  { companyId, id }: TemplateKey,
  { workspaceId, name, body }: Partial<TemplateContent>,
  now: Date,
): Promise<void> {
  await db
    .updateTable('export_template')
    .set({
      ...(workspaceId !== undefined && { workspace_id: workspaceId }),
      ...(name !== undefined && { name }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
      updated_at: now,
    })
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .execute()
}

export async function deleteTemplate(db: Queryable, { companyId, id }: TemplateKey): Promise<void> {
  await db
    .deleteFrom('export_template')
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .execute()
}

type TemplateRow = Selectable<Tables['export_template']> & { owner_email: string | null }

function toTemplate(row: TemplateRow): ExportTemplate {
  return {
    id: assertId(row.id),
    companyId: assertId(row.company_id),
    workspaceId: row.workspace_id === null ? null : assertId(row.workspace_id),
    ownerId: row.owner_id === null ? null : assertId(row.owner_id),
    ownerEmail: row.owner_email,
    name: row.name,
    body: row.body,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
