import { sql } from 'kysely'
import { hash, randomBytes } from 'node:crypto'
import { assertId, newId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { mapInSlices } from '../../platform/scheduling/time-slice.ts'
import { HOUR_MS, MINUTE_MS } from '../../platform/time/time-units.ts'
import { COMPANY_BOUNDS, isPlan } from '../plans.ts'
import { isRole } from '../member/user-store.ts'
import type { SessionId, Viewer } from '../viewer.ts'

/** A session ends after this long without a request. */
export const SESSION_IDLE_MS = 30 * MINUTE_MS
/** A session ends after this long in any case. */
export const SESSION_LIFE_MS = 12 * HOUR_MS
/** How often a session's last use is stored. */
const SEEN_EVERY_MS = MINUTE_MS
/** Per user. A new session beyond this limit ends the oldest. */
export const SESSIONS_MAX = 50
const USER_AGENT_LENGTH_MAX = 512
const TOKEN_BYTES = 32

/** The value of the cookie. The database stores only its hash. */
export type SessionToken = string

/** Call it with the account locked: concurrent calls could deadlock when they delete the oldest sessions. */
export async function insertSession(
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
  await endOldest(db, { userId, except: id, nowMs })
  return { id, token }
}

async function endOldest(
  db: Queryable,
  { userId, except, nowMs }: { userId: UserId; except: SessionId; nowMs: number },
): Promise<void> {
  await db
    .deleteFrom('user_session')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('user_session')
        .select('id')
        .where('user_id', '=', userId)
        // Never the new session, even if others have the same timestamp.
        .where('id', '!=', except)
        // Sessions dated in the future were created before the clock stepped back, so they are older.
        .orderBy((order) => order('created_at', '<=', new Date(nowMs)), 'desc')
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .offset(SESSIONS_MAX - 1),
    )
    .execute()
}

type ViewerRow = {
  tokenHash: Buffer
  sessionId: string
  userId: string
  email: string
  role: string
  companyId: string
  companyName: string
  plan: string
  needsSecondFactor: boolean
  allowedRanges: string[] | null
  workspaceIds: string[]
  customerWorkspaceIds: string[]
  seenAt: Date
}

/** A viewer with the time of the session's last use, accurate to the minute. */
export type SeenViewer = Viewer & { seenAt: Date }

/** Returns the session's viewer, or null if the token is unknown or the session has ended. Counts as a use. */
export async function findViewer(
  db: Queryable,
  token: SessionToken,
  nowMs: number,
): Promise<Viewer | null> {
  const viewer = (await listViewers(db, [token], nowMs)).get(token)
  if (!viewer) return null
  await updateLastUse(db, viewer, nowMs)
  const { seenAt: _, customerWorkspaceIds: __, ...rest } = viewer
  return rest
}

/** Includes the company's customer workspaces if the caller asked for them. */
type ListedViewer = SeenViewer & { customerWorkspaceIds: WorkspaceId[] }

/**
 * Returns the viewers of all tokens with a live session. Doesn't count as a use of the sessions. Runs one
 * statement, so that the result is a consistent snapshot.
 */
export async function listViewers(
  db: Queryable,
  tokens: readonly SessionToken[],
  nowMs: number,
  { withCustomerWorkspaces = false }: { withCustomerWorkspaces?: boolean } = {},
): Promise<ReadonlyMap<SessionToken, ListedViewer>> {
  const tokenByHash = new Map(tokens.map((token) => [hashOf(token).toString('hex'), token]))
  const { rows } = await sql<ViewerRow>`
    ${selectViewers({ withCustomerWorkspaces })}
     where s.token_hash = any (${tokens.map(hashOf)}::bytea[]) and ${isLive(nowMs)}`.execute(db)
  const listed = await mapInSlices(rows, (row) => {
    const token = tokenByHash.get(row.tokenHash.toString('hex'))
    return { token, viewer: viewerOf(row) }
  })
  return new Map(
    listed.flatMap(({ token, viewer }) =>
      token !== undefined && viewer ? [[token, viewer] as const] : [],
    ),
  )
}

/**
 * Locks a session, so that it can't be deleted until the transaction ends, and returns its viewer, or null
 * if it is over. The lock doesn't block `updateLastUse`.
 */
export async function lockSession(
  trx: Queryable,
  sessionId: SessionId,
  nowMs: number,
): Promise<Viewer | null> {
  const { rows } = await sql<ViewerRow>`
    ${selectViewers({ withCustomerWorkspaces: false })}
     where s.id = ${sessionId} and ${isLive(nowMs)}
       for key share of s`.execute(trx)
  const [row] = rows
  return row ? viewerOf(row) : null
}

function selectViewers({ withCustomerWorkspaces }: { withCustomerWorkspaces: boolean }) {
  return sql`
    select s.token_hash as "tokenHash", s.id as "sessionId", u.id as "userId", u.email, u.role,
           c.id as "companyId", c.name as "companyName", c.plan, s.seen_at as "seenAt",
           c.requires_second_factor and not exists (
             select from second_factor f where f.user_id = u.id and f.confirmed_at is not null
           ) as "needsSecondFactor",
           case when c.allowlist_for_dashboard then c.allowlist end as "allowedRanges",
           array(select w.workspace_id from user_workspace w where w.user_id = u.id) as "workspaceIds",
           array(select w.id from workspace w
                  where ${withCustomerWorkspaces} and w.company_id = c.id and w.kind = 'CUSTOMER'
                  order by w.id limit ${COMPANY_BOUNDS.workspacesMax}) as "customerWorkspaceIds"
      from user_session s
      join app_user u on u.id = s.user_id
      join company c on c.id = u.company_id`
}

function isLive(nowMs: number) {
  return sql`s.expires_at > ${new Date(nowMs)} and s.seen_at > ${new Date(nowMs - SESSION_IDLE_MS)}`
}

function viewerOf(row: ViewerRow): ListedViewer | null {
  if (!isRole(row.role) || !isPlan(row.plan)) return null
  const hasAll = row.role === 'OWNER' || row.role === 'ADMIN'
  return {
    sessionId: assertId<'session'>(row.sessionId),
    userId: assertId(row.userId),
    email: row.email,
    role: row.role,
    companyId: assertId(row.companyId),
    companyName: row.companyName,
    plan: row.plan,
    needsSecondFactor: row.needsSecondFactor,
    allowedRanges: row.allowedRanges,
    workspaceIds: hasAll ? null : row.workspaceIds.map((id) => assertId(id)),
    customerWorkspaceIds: row.customerWorkspaceIds.map((id) => assertId(id)),
    seenAt: row.seenAt,
  }
}

/** Whether the last use was stored less than a minute ago, so that it needn't be stored again. */
export function hasRecentUse({ seenAt }: Pick<SeenViewer, 'seenAt'>, nowMs: number): boolean {
  // A use more than a minute in the future isn't recent: the clock has stepped back since.
  return Math.abs(nowMs - seenAt.getTime()) < SEEN_EVERY_MS
}

/**
 * Resets the session's idle timeout, unless it was reset less than a minute ago. Lowers `expires_at` if the
 * clock has stepped back, so that the session doesn't live longer.
 */
export async function updateLastUse(
  db: Queryable,
  { sessionId, seenAt }: Pick<SeenViewer, 'sessionId' | 'seenAt'>,
  nowMs: number,
): Promise<void> {
  if (hasRecentUse({ seenAt }, nowMs)) return
  await db
    .updateTable('user_session')
    .set((eb) => ({
      seen_at: new Date(nowMs),
      expires_at: eb.fn<Date>('least', ['expires_at', eb.val(new Date(nowMs + SESSION_LIFE_MS))]),
    }))
    .where('id', '=', sessionId)
    .execute()
}

type LiveSession = {
  id: SessionId
  createdAt: Date
  seenAt: Date
  expiresAt: Date
  address: string
  userAgent: string
}

/** Live sessions, newest first. */
export async function listLiveSessions(
  db: Queryable,
  userId: UserId,
  nowMs: number,
): Promise<LiveSession[]> {
  const rows = await db
    .selectFrom('user_session')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_at', '>', new Date(nowMs))
    .where('seen_at', '>', new Date(nowMs - SESSION_IDLE_MS))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(SESSIONS_MAX)
    .execute()
  return rows.map((row) => ({
    id: assertId(row.id),
    createdAt: row.created_at,
    seenAt: row.seen_at,
    expiresAt: row.expires_at,
    address: row.address,
    userAgent: row.user_agent,
  }))
}

/** Whether the session was opened after `since`. */
export async function isSessionSince(
  db: Queryable,
  sessionId: SessionId,
  since: Date,
): Promise<boolean> {
  const row = await db
    .selectFrom('user_session')
    .select('id')
    .where('id', '=', sessionId)
    .where('created_at', '>', since)
    .executeTakeFirst()
  return row !== undefined
}

/** Returns false if the user has no such session. */
export async function deleteSession(
  db: Queryable,
  { userId, sessionId }: { userId: UserId; sessionId: SessionId },
): Promise<boolean> {
  const result = await db
    .deleteFrom('user_session')
    .where('user_id', '=', userId)
    .where('id', '=', sessionId)
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}

/** Ends the session of any user, because the cookie is about to be replaced. */
export async function deleteSessionByToken(db: Queryable, token: SessionToken): Promise<void> {
  await db.deleteFrom('user_session').where('token_hash', '=', hashOf(token)).execute()
}

/** Ends all sessions of the user, or all but one. Returns how many it ended. */
export async function deleteSessions(
  db: Queryable,
  { userId, except = null }: { userId: UserId; except?: SessionId | null },
): Promise<number> {
  const result = await db
    .deleteFrom('user_session')
    .where('user_id', '=', userId)
    .$if(except !== null, (query) => query.where('id', '!=', except))
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

function hashOf(token: SessionToken): Buffer {
  return hash('sha256', token, 'buffer')
}
