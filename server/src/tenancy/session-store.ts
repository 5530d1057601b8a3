import { sql } from 'kysely'
import { hash, randomBytes } from 'node:crypto'
import { assertId, newId, type UserId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import { isPlan } from './plans.ts'
import { isRole } from './user-store.ts'
import type { SessionId, Viewer } from './viewer.ts'

const MINUTE_MS = 60_000
/** Without a request for so long, a session ends. */
export const SESSION_IDLE_MS = 30 * MINUTE_MS
/** And in any case after this. */
export const SESSION_LIFE_MS = 12 * 60 * MINUTE_MS
/** How often it is written down that a session is in use. */
const SEEN_EVERY_MS = MINUTE_MS
const USER_AGENT_LENGTH_MAX = 512
const TOKEN_BYTES = 32

/** What the cookie holds. Only its hash is stored. */
export type SessionToken = string

export async function createSession(
  db: Queryable,
  {
    userId,
    address,
    userAgent,
    nowMs,
  }: { userId: UserId; address: string; userAgent: string; nowMs: number },
): Promise<{ id: SessionId; token: SessionToken }> {
  const id = newId<'session'>(nowMs)
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  await db
    .insertInto('user_session')
    .values({
      id,
      user_id: userId,
      token_hash: hashOf(token),
      created_at: new Date(nowMs),
      seen_at: new Date(nowMs),
      expires_at: new Date(nowMs + SESSION_LIFE_MS),
      address,
      user_agent: userAgent.slice(0, USER_AGENT_LENGTH_MAX),
    })
    .execute()
  return { id, token }
}

type ViewerRow = {
  sessionId: string
  userId: string
  email: string
  role: string
  companyId: string
  companyName: string
  plan: string
  workspaceIds: string[]
  seenAt: Date
}

/** Who the cookie belongs to, or null when it is unknown or its session is over. */
export async function findViewer(
  db: Queryable,
  token: SessionToken,
  nowMs: number,
): Promise<Viewer | null> {
  const { rows } = await sql<ViewerRow>`
    select s.id as "sessionId", u.id as "userId", u.email, u.role, c.id as "companyId",
           c.name as "companyName", c.plan, s.seen_at as "seenAt",
           array(select w.workspace_id from user_workspace w where w.user_id = u.id) as "workspaceIds"
      from user_session s
      join app_user u on u.id = s.user_id
      join company c on c.id = u.company_id
     where s.token_hash = ${hashOf(token)}
       and s.expires_at > ${new Date(nowMs)}
       and s.seen_at > ${new Date(nowMs - SESSION_IDLE_MS)}`.execute(db)
  const [row] = rows
  if (!row || !isRole(row.role) || !isPlan(row.plan)) return null
  const sessionId = assertId<'session'>(row.sessionId)
  if (nowMs - row.seenAt.getTime() >= SEEN_EVERY_MS) await noteSeen(db, sessionId, nowMs)
  const hasAll = row.role === 'OWNER' || row.role === 'ADMIN'
  return {
    sessionId,
    userId: assertId(row.userId),
    email: row.email,
    role: row.role,
    companyId: assertId(row.companyId),
    companyName: row.companyName,
    plan: row.plan,
    workspaceIds: hasAll ? null : row.workspaceIds.map((id) => assertId(id)),
  }
}

async function noteSeen(db: Queryable, sessionId: SessionId, nowMs: number): Promise<void> {
  await db
    .updateTable('user_session')
    .set({ seen_at: new Date(nowMs) })
    .where('id', '=', sessionId)
    .execute()
}

function hashOf(token: SessionToken): Buffer {
  return hash('sha256', token, 'buffer')
}
