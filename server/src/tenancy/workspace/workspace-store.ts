import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type ProjectId, type WorkspaceId } from '../../platform/id.ts'
import { type Queryable, sqlStateOf, SQLSTATE } from '../../platform/pg/database.ts'
import { lockCompany } from '../company-store.ts'
import { COMPANY_BOUNDS } from '../plans.ts'

export type WorkspaceKind = 'CUSTOMER' | 'SYSTEM'

/** The head's hash before the first event. */
const NO_HASH = '0'.repeat(64)

/** Call it inside a transaction: the workspace and its chain head are created together or not at all. */
export async function insertWorkspace(
  db: Queryable,
  workspace: { id: WorkspaceId; companyId: CompanyId; name: string; kind: WorkspaceKind },
): Promise<void> {
  await lockCompany(db, workspace.companyId)
  const { count } = await db
    .selectFrom('workspace')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', workspace.companyId)
    .where('kind', '=', 'CUSTOMER')
    .executeTakeFirstOrThrow()
  if (workspace.kind === 'CUSTOMER' && count >= COMPANY_BOUNDS.workspacesMax) {
    throw new ApiError('conflict', {
      message: `A company can have at most ${COMPANY_BOUNDS.workspacesMax} workspaces.`,
    })
  }
  await db
    .insertInto('workspace')
    .values({
      id: workspace.id,
      company_id: workspace.companyId,
      name: workspace.name,
      kind: workspace.kind,
    })
    .execute()
    .catch((error: unknown) => refuseTakenName(error, workspace.name))
  await db
    .insertInto('chain_head')
    .values({ workspace_id: workspace.id, seq: 0, hash: NO_HASH, last_id: null })
    .execute()
}

/** Call it inside a transaction: the lock that enforces the limit lasts until the transaction ends. */
export async function insertProject(
  db: Queryable,
  project: { id: ProjectId; companyId: CompanyId; workspaceId: WorkspaceId; name: string },
): Promise<void> {
  await lockCompany(db, project.companyId)
  const { count } = await db
    .selectFrom('project')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('workspace_id', '=', project.workspaceId)
    .executeTakeFirstOrThrow()
  if (count >= COMPANY_BOUNDS.projectsPerWorkspaceMax) {
    throw new ApiError('conflict', {
      message: `A workspace can have at most ${COMPANY_BOUNDS.projectsPerWorkspaceMax} projects.`,
    })
  }
  await db
    .insertInto('project')
    .values({ id: project.id, workspace_id: project.workspaceId, name: project.name })
    .execute()
    .catch((error: unknown) => refuseTakenName(error, project.name))
}

function refuseTakenName(error: unknown, name: string): never {
  if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
  throw new ApiError('conflict', {
    message: `The name ${name} is already taken. Choose another one.`,
    cause: error,
  })
}

export type NamedProject = { id: ProjectId; name: string; createdAt: Date }

/** Sorted by name. */
export async function listWorkspaceProjects(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<NamedProject[]> {
  const rows = await db
    .selectFrom('project')
    .select(['id', 'name', 'created_at'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('name')
    .limit(COMPANY_BOUNDS.projectsPerWorkspaceMax)
    .execute()
  return rows.map((row) => ({ id: assertId(row.id), name: row.name, createdAt: row.created_at }))
}

/** Locks the project until the transaction ends, so that the caller can change it. */
export async function lockProject(
  db: Queryable,
  { workspaceId, projectId }: { workspaceId: WorkspaceId; projectId: ProjectId },
): Promise<NamedProject> {
  const row = await db
    .selectFrom('project')
    .select(['id', 'name', 'created_at'])
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', projectId)
    .forUpdate()
    .executeTakeFirst()
  if (!row) throw new ApiError('not_found')
  return { id: assertId(row.id), name: row.name, createdAt: row.created_at }
}

export async function renameProject(
  db: Queryable,
  {
    workspaceId,
    projectId,
    name,
  }: { workspaceId: WorkspaceId; projectId: ProjectId; name: string },
): Promise<void> {
  await db
    .updateTable('project')
    .set({ name })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', projectId)
    .execute()
    .catch((error: unknown) => refuseTakenName(error, name))
}

export async function renameWorkspace(
  db: Queryable,
  { workspaceId, name }: { workspaceId: WorkspaceId; name: string },
): Promise<void> {
  await db
    .updateTable('workspace')
    .set({ name })
    .where('id', '=', workspaceId)
    .execute()
    .catch((error: unknown) => refuseTakenName(error, name))
}

export async function hasProject(
  db: Queryable,
  { workspaceId, projectId }: { workspaceId: WorkspaceId; projectId: ProjectId },
): Promise<boolean> {
  const row = await db
    .selectFrom('project')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', projectId)
    .executeTakeFirst()
  return row !== undefined
}

export async function listProjectIds(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<ProjectId[]> {
  const rows = await db
    .selectFrom('project')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .execute()
  return rows.map(({ id }) => assertId(id))
}

/** The company's workspaces for customers' events, sorted by id. */
export async function listCustomerWorkspaces(
  db: Queryable,
  companyId: CompanyId,
): Promise<WorkspaceId[]> {
  const rows = await db
    .selectFrom('workspace')
    .select('id')
    .where('company_id', '=', companyId)
    .where('kind', '=', 'CUSTOMER')
    .orderBy('id')
    .limit(COMPANY_BOUNDS.workspacesMax)
    .execute()
  return rows.map(({ id }) => assertId(id))
}

/** Includes the system workspace, because a request can name it. */
export async function hasWorkspace(
  db: Queryable,
  { companyId, workspaceId }: { companyId: CompanyId; workspaceId: WorkspaceId },
): Promise<boolean> {
  const row = await db
    .selectFrom('workspace')
    .select('id')
    .where('company_id', '=', companyId)
    .where('id', '=', workspaceId)
    .executeTakeFirst()
  return row !== undefined
}

export type NamedWorkspace = { id: WorkspaceId; name: string; kind: WorkspaceKind }

/** The workspaces a member can see, sorted by name. Null ids mean all, including the system workspace. */
export async function listViewerWorkspaces(
  db: Queryable,
  {
    companyId,
    workspaceIds,
  }: { companyId: CompanyId; workspaceIds: readonly WorkspaceId[] | null },
): Promise<NamedWorkspace[]> {
  const rows = await db
    .selectFrom('workspace')
    .select(['id', 'name', 'kind'])
    .where('company_id', '=', companyId)
    .orderBy('name')
    .limit(COMPANY_BOUNDS.workspacesMax + 1)
    .execute()
  return rows
    .map(({ id, name, kind }) => ({ id: assertId<'workspace'>(id), name, kind: kindOf(kind) }))
    .filter(({ id }) => workspaceIds === null || workspaceIds.includes(id))
}

export type KeyWorkspace = NamedWorkspace & { createdAt: Date }

type KeyReach = { companyId: CompanyId; workspaceId: WorkspaceId | null }

/** The workspaces a key can see, sorted by name, with the system workspace last. */
export async function listKeyWorkspaces(db: Queryable, key: KeyReach): Promise<KeyWorkspace[]> {
  const rows = await selectKeyWorkspaces(db, key)
    .orderBy((eb) => eb('kind', '=', 'SYSTEM'))
    .orderBy('name')
    .limit(COMPANY_BOUNDS.workspacesMax + 1)
    .execute()
  return rows.map(toKeyWorkspace)
}

/** Returns null if the key can't see the workspace. */
export async function findKeyWorkspace(
  db: Queryable,
  key: KeyReach,
  id: WorkspaceId,
): Promise<KeyWorkspace | null> {
  const row = await selectKeyWorkspaces(db, key).where('id', '=', id).executeTakeFirst()
  return row ? toKeyWorkspace(row) : null
}

/** The one of a workspace key, or all of the company, including the system workspace. */
function selectKeyWorkspaces(db: Queryable, { companyId, workspaceId }: KeyReach) {
  return db
    .selectFrom('workspace')
    .select(['id', 'name', 'kind', 'created_at'])
    .where('company_id', '=', companyId)
    .$if(workspaceId !== null, (query) => query.where('id', '=', workspaceId))
}

type KeyWorkspaceRow = Awaited<
  ReturnType<ReturnType<typeof selectKeyWorkspaces>['executeTakeFirstOrThrow']>
>

function toKeyWorkspace({ id, name, kind, created_at: createdAt }: KeyWorkspaceRow): KeyWorkspace {
  return { id: assertId(id), name, kind: kindOf(kind), createdAt }
}

function kindOf(text: string): WorkspaceKind {
  return text === 'SYSTEM' ? 'SYSTEM' : 'CUSTOMER'
}

/** Every company has one system workspace, which is created with it. */
export async function getSystemWorkspace(
  db: Queryable,
  companyId: CompanyId,
): Promise<WorkspaceId> {
  const row = await db
    .selectFrom('workspace')
    .select('id')
    .where('company_id', '=', companyId)
    .where('kind', '=', 'SYSTEM')
    .executeTakeFirstOrThrow()
  return assertId(row.id)
}

/** Returns null if the workspace doesn't exist. */
export async function findCompanyOf(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<CompanyId | null> {
  const row = await db
    .selectFrom('workspace')
    .select('company_id')
    .where('id', '=', workspaceId)
    .executeTakeFirst()
  return row ? assertId(row.company_id) : null
}

/** All workspaces of all companies, for verifying the ledger. */
export async function listAllWorkspaces(
  db: Queryable,
): Promise<{ id: WorkspaceId; companyId: CompanyId }[]> {
  const rows = await db.selectFrom('workspace').select(['id', 'company_id']).orderBy('id').execute()
  return rows.map((row) => ({ id: assertId(row.id), companyId: assertId(row.company_id) }))
}

/** Which of these workspaces exist. */
export async function listExistingWorkspaces(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
): Promise<WorkspaceId[]> {
  const rows = await db
    .selectFrom('workspace')
    .select('id')
    .where('id', '=', sql<string>`any(${workspaceIds}::uuid[])`)
    .execute()
  return rows.map((row) => assertId(row.id))
}
