import { randomBytes } from 'node:crypto'
import { systemClock } from '../platform/time/clock.ts'
import { type CompanyId, newId, type ProjectId, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { insertCompany } from './company-store.ts'
import { issueKey } from './key/issue-key.ts'
import { hashPassword } from './sign-in/password.ts'
import type { Plan } from './plans.ts'
import { insertUser } from './member/user-store.ts'
import { insertProject, insertWorkspace } from './workspace/workspace-store.ts'

export type CompanyPlan = {
  company: string
  plan: Plan
  workspaces: readonly [string, ...string[]]
  project: string
  email: string | null
  password: string | null
  allowlist: readonly string[]
}

/** The output of `annals bootstrap --json`. Scripts outside the project read it. */
export type CreatedCompany = {
  company: { id: CompanyId; name: string; plan: Plan }
  workspace: { id: WorkspaceId; name: string }
  project: { id: ProjectId; name: string }
  companyKey: string
  workspaceKey: string
  user: { email: string; password: string }
  workspaces: { id: WorkspaceId; name: string; workspaceKey: string }[]
}

/**
 * Creates a company with an owner, workspaces, a project and keys, in one transaction. Only this function
 * and the dashboard ever see the text of a key; the database stores hashes.
 */
export async function createCompany(
  db: Queryable,
  options: CompanyPlan,
  hash: (password: string) => Promise<string> = hashPassword,
): Promise<CreatedCompany> {
  const company = { id: newId<'company'>(), name: options.company, plan: options.plan }
  const user = {
    // RFC 2606 reserves example.com, so mail to this address is never delivered.
    email: (options.email ?? `owner-${randomBytes(4).toString('hex')}@example.com`).toLowerCase(),
    password: options.password ?? randomBytes(12).toString('base64url'),
  }
  const passwordHash = await hash(user.password)

  return await db.transaction().execute(async (trx) => {
    await insertCompany(trx, { ...company, allowlist: [...options.allowlist] })
    await insertUser(trx, {
      id: newId(),
      companyId: company.id,
      email: user.email,
      passwordHash,
      role: 'OWNER',
    })
    await insertWorkspace(trx, {
      id: newId(),
      companyId: company.id,
      name: 'Dashboard activity',
      kind: 'SYSTEM',
    })
    const companyKey = await createOwnKey(trx, company.id, null, 'Company key')
    const [firstName, ...otherNames] = options.workspaces
    const first = await createOwnWorkspace(trx, company.id, firstName)
    const others = []
    for (const name of otherNames) others.push(await createOwnWorkspace(trx, company.id, name))
    const project = { id: newId<'project'>(), name: options.project }
    await insertProject(trx, { ...project, companyId: company.id, workspaceId: first.id })
    return {
      company,
      workspace: { id: first.id, name: first.name },
      project,
      companyKey,
      workspaceKey: first.workspaceKey,
      user,
      workspaces: [first, ...others],
    }
  })
}

async function createOwnWorkspace(db: Queryable, companyId: CompanyId, name: string) {
  const id = newId<'workspace'>()
  await insertWorkspace(db, { id, companyId, name, kind: 'CUSTOMER' })
  return { id, name, workspaceKey: await createOwnKey(db, companyId, id, `${name} key`) }
}

async function createOwnKey(
  db: Queryable,
  companyId: CompanyId,
  workspaceId: WorkspaceId | null,
  name: string,
): Promise<string> {
  const options = { companyId, workspaceId, name, expiresAt: null }
  const { text } = await issueKey(db, options, systemClock())
  return text
}
