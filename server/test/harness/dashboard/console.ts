import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { Database } from '../../../src/platform/pg/database.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import type { CreatedCompany } from '../../../src/tenancy/create-company.ts'
import type { Role } from '../../../src/tenancy/member/user-store.ts'
import { type Member, signInAs } from './dashboard.ts'
import { documented } from '../openapi/documented.ts'
import { type OpenDownload, openStream, storeEvents } from '../export/exports.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'
import type { TestApp } from '../app/start-app.ts'

/** Text that is dangerous if it is treated as a script or a formula. */
export const HOSTILE = '<script>alert(1)</script>"\'=HYPERLINK("x")\u2028{{7*7}}'

/** Runs work that the service itself has no permission for. */
export async function asOwner<T>(
  annals: TestApp,
  work: (db: Database['db']) => Promise<T>,
): Promise<T> {
  await using owner = new Database({
    connection: annals.database.connection,
    role: 'owner',
    connectionsMax: 1,
    logger: createLogger('silent'),
    timeoutFactor: TIMEOUT_FACTOR,
  })
  return await work(owner.db)
}

/** Runs `work` as if the database didn't have the table yet. */
export async function withoutTable(
  annals: TestApp,
  table: string,
  work: () => Promise<void>,
): Promise<void> {
  const later = `${table}_of_tomorrow`
  await asOwner(annals, async (db) => {
    await sql`alter table ${sql.ref(table)} rename to ${sql.ref(later)}`.execute(db)
    try {
      await work()
    } finally {
      await sql`alter table ${sql.ref(later)} rename to ${sql.ref(table)}`.execute(db)
    }
  })
}

/** A member whose responses are all compared with the document. */
export async function enroll(
  annals: TestApp,
  company: CreatedCompany,
  role: Role,
  ...workspaces: readonly { id: CreatedCompany['workspace']['id'] }[]
): Promise<Member> {
  const member = await signInAs(
    annals,
    company,
    role,
    workspaces.map(({ id }) => id),
  )
  return await documented(member)
}

/**
 * A company with two workspaces, each with its own events. `action` shows which workspace an event
 * belongs to.
 */
export async function createWithTwoWorkspaces(annals: TestApp) {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces
  assert(production && staging)
  for (const [workspace, name] of [
    [production, 'production'],
    [staging, 'staging'],
  ] as const) {
    await storeEvents(annals, workspace.workspaceKey, [
      { category: 'auth', action: `${name}.login`, actor: { email: 'ann@example.com' } },
      {
        category: 'billing',
        action: `${name}.invoice`,
        resource: { type: 'invoice', id: 'inv-1' },
      },
      { category: 'auth', action: `${name}.logout`, actor: { email: 'bo@example.com' } },
    ])
  }
  return { company, production, staging }
}

export async function openDashboardDownload(
  annals: TestApp,
  member: Pick<Member, 'cookie'>,
  jobId: string,
  headers: Record<string, string> = {},
): Promise<OpenDownload> {
  return await openMemberStream(annals, member, `${jobId}/download`, headers)
}

export async function openEvidencePack(
  annals: TestApp,
  member: Pick<Member, 'cookie'>,
  jobId: string,
): Promise<OpenDownload> {
  return await openMemberStream(annals, member, `${jobId}/evidence-pack`)
}

async function openMemberStream(
  { url }: TestApp,
  { cookie }: Pick<Member, 'cookie'>,
  path: string,
  headers: Record<string, string> = {},
): Promise<OpenDownload> {
  const own = { cookie, 'sec-fetch-site': 'same-origin', ...headers }
  return await openStream(`${url}/dashboard/exports/${path}`, own)
}
