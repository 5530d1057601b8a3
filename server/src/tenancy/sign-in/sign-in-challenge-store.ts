import { sql } from 'kysely'
import { hash, randomBytes } from 'node:crypto'
import { assertId, type CompanyId, type UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { MINUTE_MS } from '../../platform/time/time-units.ts'
import { isRole, type Role } from '../member/user-store.ts'

const CHALLENGE_LIFE_MS = 5 * MINUTE_MS
/** Wrong codes per challenge. After that, the password is required again. */
const CHALLENGE_ATTEMPTS_MAX = 5
/** A new challenge deletes the oldest beyond this limit. */
const CHALLENGES_PER_USER_MAX = 5
const TOKEN_BYTES = 32

/** Proves that the caller passed the first step. The database stores only its hash. */
type ChallengeToken = string
export type NewChallenge = { token: ChallengeToken; expiresAt: Date }

/** A person at the identity provider whose account is linked after the second factor. */
export type UnlinkedPerson = { issuer: string; subject: string; groups: readonly string[] }

/** Call it with the account locked, so that the number of challenges stays bounded. */
export async function insertChallenge(
  trx: Queryable,
  { userId, nowMs, person }: { userId: UserId; nowMs: number; person?: UnlinkedPerson | undefined },
): Promise<NewChallenge> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const expiresAt = new Date(nowMs + CHALLENGE_LIFE_MS)
  // Challenges dated in the future were created before the clock stepped back, so they are older.
  await sql`
    delete from sign_in_challenge
     where token_hash in (select token_hash from sign_in_challenge
                           where user_id = ${userId}
                           order by created_at <= ${new Date(nowMs)} desc, created_at desc, token_hash
                          offset ${CHALLENGES_PER_USER_MAX - 1})`.execute(trx)
  await trx
    .insertInto('sign_in_challenge')
    .values({
      token_hash: hashOf(token),
      user_id: userId,
      attempts_left: CHALLENGE_ATTEMPTS_MAX,
      created_at: new Date(nowMs),
      expires_at: expiresAt,
      issuer: person?.issuer ?? null,
      subject: person?.subject ?? null,
      groups: person ? [...person.groups] : null,
    })
    .execute()
  return { token, expiresAt }
}

/** The member who passed the first step. */
export type ChallengedAccount = { userId: UserId; companyId: CompanyId; email: string; role: Role }

/** Null if the challenge is unknown, used or expired. */
export async function findChallenged(
  db: Queryable,
  token: ChallengeToken,
  nowMs: number,
): Promise<ChallengedAccount | null> {
  const { rows } = await sql<{ userId: string; companyId: string; email: string; role: string }>`
    select u.id as "userId", u.company_id as "companyId", u.email, u.role
      from sign_in_challenge c
      join app_user u on u.id = c.user_id
     where c.token_hash = ${hashOf(token)} and ${isOpen(nowMs)}`.execute(db)
  const [row] = rows
  if (!row || !isRole(row.role)) return null
  const { email, role } = row
  return { userId: assertId(row.userId), companyId: assertId(row.companyId), email, role }
}

/** Locks the challenge, so that it is used once. Returns null if it was used or has expired. */
export async function lockChallenge(
  trx: Queryable,
  token: ChallengeToken,
  nowMs: number,
): Promise<{ person: UnlinkedPerson | null } | null> {
  const { rows } = await sql<Nullable<UnlinkedPerson>>`
    select c.issuer, c.subject, c.groups
      from sign_in_challenge c
     where c.token_hash = ${hashOf(token)} and ${isOpen(nowMs)}
       for update`.execute(trx)
  const [row] = rows
  if (!row) return null
  const { issuer, subject, groups } = row
  if (issuer === null || subject === null || groups === null) return { person: null }
  return { person: { issuer, subject, groups } }
}

type Nullable<T> = { [Field in keyof T]: T[Field] | null }

/** A challenge from before the clock stepped back doesn't live longer. */
function isOpen(nowMs: number) {
  return sql`c.expires_at > ${new Date(nowMs)}
         and c.expires_at <= ${new Date(nowMs + CHALLENGE_LIFE_MS)}`
}

/** Counts a wrong code. Returns false if it was the last attempt, and the challenge is deleted. */
export async function spendAttempt(trx: Queryable, token: ChallengeToken): Promise<boolean> {
  const deleted = await trx
    .deleteFrom('sign_in_challenge')
    .where('token_hash', '=', hashOf(token))
    .where('attempts_left', '=', 1)
    .executeTakeFirst()
  if (deleted.numDeletedRows > 0n) return false
  await trx
    .updateTable('sign_in_challenge')
    .set((eb) => ({ attempts_left: eb('attempts_left', '-', 1) }))
    .where('token_hash', '=', hashOf(token))
    .execute()
  return true
}

export async function deleteChallenge(trx: Queryable, token: ChallengeToken): Promise<void> {
  await trx.deleteFrom('sign_in_challenge').where('token_hash', '=', hashOf(token)).execute()
}

/** Call it when the password or the second factor changes. */
export async function deleteChallenges(trx: Queryable, userId: UserId): Promise<void> {
  await trx.deleteFrom('sign_in_challenge').where('user_id', '=', userId).execute()
}

function hashOf(token: ChallengeToken): Buffer {
  return hash('sha256', token, 'buffer')
}
