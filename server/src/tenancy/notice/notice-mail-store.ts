import { sql } from 'kysely'
import { assertId, type CompanyId, type UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import {
  isNoticeKind,
  NOTICE_KINDS,
  type Notice,
  type NoticeId,
  type NoticeKind,
} from './notice.ts'

type UnplannedNotice = Pick<Notice, 'companyId' | 'id' | 'kind' | 'workspaceId' | 'userId'>

type UnplannedRow = {
  companyId: string
  id: string
  kind: string
  workspaceId: string | null
  userId: string | null
}

/**
 * Takes the oldest notice whose mails aren't planned yet, and marks it as planned. Call it inside a transaction:
 * other nodes skip the notice until the transaction ends. Null if there is none.
 */
export async function takeUnplannedNotice(
  db: Queryable,
  { now, createdSince }: { now: Date; createdSince: Date },
): Promise<UnplannedNotice | null> {
  const { rows } = await sql<UnplannedRow>`
    update notice n set mails_planned_at = ${now}
      from (select company_id, id
              from notice
             where mails_planned_at is null and created_at >= ${createdSince}
               and kind = any (${[...NOTICE_KINDS]}::text[])
             order by created_at
             limit 1
               for update skip locked) as next
     where n.company_id = next.company_id and n.id = next.id
    returning n.company_id as "companyId", n.id, n.kind, n.workspace_id as "workspaceId",
              n.user_id as "userId"`.execute(db)
  const [row] = rows
  if (!row || !isNoticeKind(row.kind)) return null
  return {
    companyId: assertId(row.companyId),
    id: assertId(row.id),
    kind: row.kind,
    workspaceId: row.workspaceId === null ? null : assertId(row.workspaceId),
    userId: row.userId === null ? null : assertId(row.userId),
  }
}

/**
 * Plans mails to the members who want this kind and haven't had too many in the last hour. `userIds` are those who
 * can see the notice. A company that is over its own limit gets none.
 */
export async function planMails(
  db: Queryable,
  { companyId, id, kind }: UnplannedNotice,
  {
    userIds,
    now,
    hourStart,
    perMemberMax,
    perCompanyMax,
    isUnlimited,
  }: {
    userIds: readonly UserId[]
    now: Date
    hourStart: Date
    perMemberMax: number
    perCompanyMax: number
    isUnlimited: boolean
  },
): Promise<void> {
  await sql`
    with recent as (
      select user_id, count(*) as mails
        from notice_mail
       where company_id = ${companyId} and created_at > ${hourStart}
       group by user_id
    )
    insert into notice_mail (company_id, notice_id, user_id, status, due_at, created_at)
    select ${companyId}::uuid, ${id}::uuid, u.user_id, 'PENDING', ${now}::timestamptz, ${now}::timestamptz
      from unnest(${userIds}::uuid[]) as u (user_id)
     where not exists (select from notice_mail_off o where o.user_id = u.user_id and o.kind = ${kind})
       and (${isUnlimited}
            or coalesce((select r.mails from recent r where r.user_id = u.user_id), 0) < ${perMemberMax}
               and coalesce((select sum(r.mails) from recent r), 0) < ${perCompanyMax})
    on conflict do nothing`.execute(db)
}

export type ClaimedMail = {
  companyId: CompanyId
  noticeId: NoticeId
  userId: UserId
  /** Starts at 1. */
  attempt: number
}

/**
 * Claims the mail that is due first. The claim is committed before the mail is sent, and no node claims it again
 * unless the mail server refuses it. One that is due after `dueMax` was queued while the clock was ahead. Null
 * if none is due.
 */
export async function claimMail(
  db: Queryable,
  { now, dueMax, except }: { now: Date; dueMax: Date; except: readonly CompanyId[] },
): Promise<ClaimedMail | null> {
  const { rows } = await sql<{
    companyId: string
    noticeId: string
    userId: string
    attempt: number
  }>`
    update notice_mail m set status = 'SENDING', attempt = m.attempt + 1
      from (select company_id, notice_id, user_id
              from notice_mail
             where status = 'PENDING' and (due_at <= ${now} or due_at > ${dueMax})
               and company_id <> all (${except}::uuid[])
             order by due_at
             limit 1
               for update skip locked) as next
     where m.company_id = next.company_id and m.notice_id = next.notice_id and m.user_id = next.user_id
    returning m.company_id as "companyId", m.notice_id as "noticeId", m.user_id as "userId", m.attempt`.execute(
    db,
  )
  const [row] = rows
  return row
    ? {
        companyId: assertId(row.companyId),
        noticeId: assertId(row.noticeId),
        userId: assertId(row.userId),
        attempt: row.attempt,
      }
    : null
}

type MailContent = Pick<Notice, 'kind' | 'workspaceId' | 'userId' | 'message' | 'link'> & {
  workspaceName: string | null
}

/** What to send. Null if the notice was deleted, or if the member turned its kind off meanwhile. */
export async function findMailContent(
  db: Queryable,
  { companyId, noticeId, userId }: ClaimedMail,
): Promise<MailContent | null> {
  const { rows } = await sql<
    Omit<MailContent, 'kind' | 'workspaceId' | 'userId'> & Omit<UnplannedRow, 'companyId' | 'id'>
  >`
    select n.kind, n.workspace_id as "workspaceId", n.user_id as "userId", n.message, n.link,
           (select w.name from workspace w where w.id = n.workspace_id) as "workspaceName"
      from notice n
     where n.company_id = ${companyId} and n.id = ${noticeId}
       and not exists (select from notice_mail_off o where o.user_id = ${userId} and o.kind = n.kind)`.execute(
    db,
  )
  const [row] = rows
  if (!row || !isNoticeKind(row.kind)) return null
  return {
    ...row,
    kind: row.kind,
    workspaceId: row.workspaceId === null ? null : assertId(row.workspaceId),
    userId: row.userId === null ? null : assertId(row.userId),
  }
}

export type MailEnd = { status: 'SENT' | 'FAILED' } | { status: 'PENDING'; retryAt: Date }

/** Stores the result of a claimed mail. `retryAt` makes it due again. */
export async function settleMail(
  db: Queryable,
  { companyId, noticeId, userId }: ClaimedMail,
  end: MailEnd,
): Promise<void> {
  await db
    .updateTable('notice_mail')
    .set({ status: end.status, ...(end.status === 'PENDING' && { due_at: end.retryAt }) })
    .where('company_id', '=', companyId)
    .where('notice_id', '=', noticeId)
    .where('user_id', '=', userId)
    .where('status', '=', 'SENDING')
    .execute()
}

/** The kinds that a member doesn't get by mail. */
export async function listMailOff(db: Queryable, userId: UserId): Promise<NoticeKind[]> {
  const rows = await db
    .selectFrom('notice_mail_off')
    .select('kind')
    .where('user_id', '=', userId)
    .orderBy('kind')
    .execute()
  return rows.flatMap(({ kind }) => (isNoticeKind(kind) ? [kind] : []))
}

/** Call it inside a transaction with the company locked. */
export async function replaceMailOff(
  db: Queryable,
  userId: UserId,
  kinds: readonly NoticeKind[],
): Promise<void> {
  await db.deleteFrom('notice_mail_off').where('user_id', '=', userId).execute()
  await sql`
    insert into notice_mail_off (user_id, kind)
    select ${userId}::uuid, kind from unnest(${kinds}::text[]) as k (kind)
    on conflict do nothing`.execute(db)
}
