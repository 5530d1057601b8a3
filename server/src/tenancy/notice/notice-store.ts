import { sql } from 'kysely'
import { assertId, newId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import type { Viewer } from '../viewer.ts'
import { isNoticeKind, kindsFor, type Notice, NOTICE_RULES, UNLIMITED_KINDS } from './notice.ts'
import type { NoticeDraft, NoticeId, NoticeKind } from './notice.ts'

export const NOTICE_KEPT_MS = 90 * DAY_MS
/** A state that ends and starts again within this time is the same cause. */
const SAME_CAUSE_MS = DAY_MS
const MESSAGE_CHARS_MAX = 1_000

/**
 * Creates a notice for each draft whose cause has none. Nodes that find the same cause at the same time wait
 * for each other at its row, and only the first creates the notice. Returns how many were created.
 */
export async function raiseNotices(
  db: Queryable,
  found: readonly NoticeDraft[],
  nowMs: number,
): Promise<number> {
  if (found.length === 0) return 0
  const now = new Date(nowMs)
  const drafts = [...new Map(found.map((draft) => [keyOf(draft), draft])).values()]
  const { numAffectedRows } = await sql`
    with draft as (
      select *
        from unnest(${drafts.map(({ companyId }) => companyId)}::uuid[],
                    ${drafts.map(() => newId(nowMs))}::uuid[],
                    ${drafts.map(({ kind }) => kind)}::text[],
                    ${drafts.map(({ kind, cause }) => `${kind}:${cause}`)}::text[],
                    ${drafts.map(({ workspaceId }) => workspaceId)}::uuid[],
                    ${drafts.map(({ userId = null }) => userId)}::uuid[],
                    ${drafts.map(({ message }) => truncateMessage(message))}::text[],
                    ${drafts.map(({ link }) => link)}::text[],
                    ${drafts.map(({ kind }) => forgetAt(kind, nowMs))}::timestamptz[])
          as d (company_id, id, kind, cause, workspace_id, user_id, message, link, forget_at)
    ), remembered as (
      insert into notice_cause as c (company_id, cause, kind, notice_id, forget_at)
      select company_id, cause, kind, id, forget_at from draft order by company_id, cause
      on conflict (company_id, cause) do update
         set notice_id = case when c.forget_at <= ${now} then excluded.notice_id else c.notice_id end,
             forget_at = excluded.forget_at
       where c.forget_at is not null
         and (excluded.forget_at is null or c.forget_at <= ${now}
              or c.forget_at < excluded.forget_at - interval '1 day')
      returning c.company_id, c.notice_id
    )
    insert into notice (company_id, id, kind, workspace_id, user_id, message, link, created_at)
    select d.company_id, d.id, d.kind, d.workspace_id, d.user_id, d.message, d.link, ${now}
      from draft d
      join remembered r on r.company_id = d.company_id and r.notice_id = d.id`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

function keyOf({ companyId, kind, cause }: NoticeDraft): string {
  return `${companyId} ${kind}:${cause}`
}

/** Names are shorter, so this only keeps an unexpected text from failing the transaction. */
function truncateMessage(message: string): string {
  return message.slice(0, MESSAGE_CHARS_MAX).toWellFormed()
}

function forgetAt(kind: NoticeKind, nowMs: number): Date | null {
  return NOTICE_RULES[kind].isLasting ? null : new Date(nowMs + NOTICE_KEPT_MS)
}

/** Ends the causes of a kind that are not among those that a node found to last. */
export async function endOtherCauses(
  db: Queryable,
  kind: NoticeKind,
  lasting: readonly NoticeDraft[],
  nowMs: number,
): Promise<void> {
  await sql`
    update notice_cause as c set forget_at = ${new Date(nowMs + SAME_CAUSE_MS)}
     where c.kind = ${kind} and c.forget_at is null
       and not exists (
         select from unnest(${lasting.map(({ companyId }) => companyId)}::uuid[],
                            ${lasting.map(({ cause }) => `${kind}:${cause}`)}::text[])
                       as l (company_id, cause)
          where l.company_id = c.company_id and l.cause = c.cause)`.execute(db)
}

export type ListedNotice = Notice & { isRead: boolean }

type NoticeRow = {
  id: string
  companyId: string
  kind: string
  workspaceId: string | null
  userId: string | null
  message: string
  link: string
  createdAt: Date
  isRead: boolean
}

/** Newest first, only what the member can see. `before` is the last one of the page before. */
export async function listVisibleNotices(
  db: Queryable,
  viewer: Viewer,
  { before, limit }: { before: NoticeId | null; limit: number },
): Promise<ListedNotice[]> {
  const { rows } = await sql<NoticeRow>`
    select n.id, n.company_id as "companyId", n.kind, n.workspace_id as "workspaceId",
           n.user_id as "userId", n.message, n.link, n.created_at as "createdAt",
           ${isRead(viewer)} as "isRead"
      from notice n
     where ${isVisible(viewer)} and (${before}::uuid is null or n.id < ${before})
     order by n.id desc
     limit ${limit}`.execute(db)
  return rows.flatMap((row) => toListed(row) ?? [])
}

export async function countUnreadNotices(db: Queryable, viewer: Viewer): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from notice n
     where ${isVisible(viewer)} and not ${isRead(viewer)}`.execute(db)
  return rows[0]?.count ?? 0
}

/** Ignores notices that the member can't see, and those they have read. */
export async function markNoticesRead(
  db: Queryable,
  viewer: Viewer,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<void> {
  await sql`
    insert into notice_read (company_id, notice_id, user_id, read_at)
    select n.company_id, n.id, ${viewer.userId}, ${now}
      from notice n
     where ${isVisible(viewer)} and n.id = any (${ids}::uuid[])
     order by n.id
    on conflict do nothing`.execute(db)
}

/** The rule of `canSeeNotice`. */
function isVisible({ companyId, userId, role, workspaceIds }: Viewer) {
  return sql<boolean>`(
    n.company_id = ${companyId} and n.kind = any (${kindsFor(role)}::text[])
    and (${workspaceIds === null} or n.workspace_id = any (${workspaceIds ?? []}::uuid[])
         or (n.workspace_id is null and n.user_id = ${userId})))`
}

function isRead({ userId }: Viewer) {
  return sql<boolean>`exists (
    select from notice_read r
     where r.company_id = n.company_id and r.notice_id = n.id and r.user_id = ${userId})`
}

/** Null for a kind that a newer program created. */
function toListed({ id, companyId, kind, workspaceId, userId, ...row }: NoticeRow) {
  if (!isNoticeKind(kind)) return null
  return {
    ...row,
    id: assertId<'notice'>(id),
    companyId: assertId<'company'>(companyId),
    kind,
    workspaceId: workspaceId === null ? null : assertId<'workspace'>(workspaceId),
    userId: userId === null ? null : assertId<'user'>(userId),
  }
}

/** Deletes notices created before the given time. Returns how many. */
export async function deleteOldNotices(
  db: Queryable,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from notice
     where ctid = any(array(
             select ctid from notice where created_at < ${before}
              order by created_at limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

/** Deletes the oldest notices of companies that have more than `keptMax`. Returns how many. */
export async function deleteExcessNotices(
  db: Queryable,
  { keptMax, limit }: { keptMax: number; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from notice
     where (company_id, id) in (
             select company_id, id
               from (select company_id, id,
                            row_number() over (partition by company_id order by id desc) as nth
                       from notice
                      where kind <> all (${UNLIMITED_KINDS}::text[])) as ranked
              where nth > ${keptMax}
              limit ${limit})`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

export async function deleteForgottenCauses(
  db: Queryable,
  { now, limit }: { now: Date; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from notice_cause
     where ctid = any(array(
             select ctid from notice_cause where forget_at <= ${now}
              order by forget_at limit ${limit} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
