import { sql } from 'kysely'
import { newId, type UserId, type WorkspaceId } from '../../../src/platform/id.ts'
import type { CreatedCompany } from '../../../src/tenancy/create-company.ts'
import { insertSession } from '../../../src/tenancy/sign-in/session-store.ts'
import { insertUser, type Role } from '../../../src/tenancy/member/user-store.ts'
import type { TestResponse, CallOptions, TestApp } from '../app/start-app.ts'

/** A signed-in member. */
export type Member = {
  userId: UserId
  email: string
  cookie: string
  /** Sends a request as the member's browser would from the dashboard. */
  call: (method: string, path: string, options?: CallOptions) => Promise<TestResponse>
}

/**
 * A new member of the company, signed in without a password, because most tests are not about
 * login.
 */
export async function signInAs(
  app: TestApp,
  { company }: CreatedCompany,
  role: Role,
  workspaceIds: readonly WorkspaceId[] = [],
): Promise<Member> {
  const { db } = app.app.database
  const userId = newId<'user'>()
  const email = `${role.toLowerCase()}-${userId.slice(-12)}@example.com`
  await insertUser(db, { id: userId, companyId: company.id, email, passwordHash: 'none', role })
  for (const workspaceId of workspaceIds) {
    await db
      .insertInto('user_workspace')
      .values({ user_id: userId, workspace_id: workspaceId })
      .execute()
  }
  const { token } = await insertSession(db, {
    userId,
    address: '127.0.0.1',
    userAgent: 'test',
    nowMs: Date.now(),
  })
  const cookie = `annals_session=${token}`
  return { userId, email, cookie, call: callAs(app, cookie) }
}

export function callAs(app: TestApp, cookie: string): Member['call'] {
  return (method, path, options = {}) =>
    app.call(method, path, {
      ...options,
      headers: { cookie, 'sec-fetch-site': 'same-origin', ...options.headers },
    })
}

type AuditRow = {
  action: string
  actor: string
  resource: string | null
  metadata: string
}

/** The company's audit entries, oldest first. */
export async function readAudit(app: TestApp, { company }: CreatedCompany) {
  const { rows } = await sql<AuditRow>`
    select e.action, e.actor, e.resource, e.metadata
      from event e join workspace w on w.id = e.workspace_id
     where w.company_id = ${company.id} and w.kind = 'SYSTEM'
     order by e.seq`.execute(app.app.database.db)
  return rows.map(({ action, actor, resource, metadata }) => ({
    action,
    actor: JSON.parse(actor),
    resource: resource === null ? null : JSON.parse(resource),
    metadata: JSON.parse(metadata),
  }))
}
