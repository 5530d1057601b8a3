import { type RawBuilder, sql } from 'kysely'
import type { SealedEvent } from '../../../ledger/event.ts'
import { EVENT_COLUMNS, type EventRow, PART_BYTES, toEvent } from '../../../ledger/event-store.ts'
import { assertId, type CompanyId, type ProjectId, type WorkspaceId } from '../../../platform/id.ts'
import { KEEP_PLAN } from '../../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { LeasedDelivery, WebhookId } from '../delivery/delivery.ts'
import type { Settlement } from './settlement.ts'
import { isSelected } from '../delivery/selection-store.ts'
import type { Selection, Target, WebhookFilter } from '../webhook.ts'
import type { WorkCursor } from './work-order.ts'

/** A webhook with work to do. */
export type WebhookWork = Selection &
  Target & {
    workspaceId: WorkspaceId
    webhookId: WebhookId
    companyId: CompanyId
    /** Events up to `projectSinceSeq` are matched against the previous project and filter. */
    projectSinceSeq: number
    pastProjectId: ProjectId | null
    pastFilter: WebhookFilter | null
    isEnabled: boolean
    disabledReason: string | null
    seenSeq: number
    headSeq: number
    openCount: number
    failureCount: number
    hasDue: boolean
    /** How many webhooks of its company have work. */
    companyWorkCount: number
  }

/** A delivery that this node has leased, and its event, or null if there is none (anymore). */
export type LeasedWork = { delivery: LeasedDelivery; event: SealedEvent | null }

/** Identifies who may send a delivery, and until when. */
export type Lease = {
  token: string
  until: Date
  /** The node's lease epoch when it requested the lease. */
  epoch?: number | undefined
}

/** How much can be leased at once. The first delivery may exceed the bytes. */
export type LeaseRoom = { count: number; bytes: number }

const FIRST_ID = '00000000-0000-0000-0000-000000000000'

type WorkRow = Omit<
  WebhookWork,
  'workspaceId' | 'webhookId' | 'companyId' | 'projectId' | 'pastProjectId' | 'secrets'
> & {
  workspaceId: string
  webhookId: string
  companyId: string
  projectId: string | null
  pastProjectId: string | null
  secret: Buffer
  nextSecret: Buffer | null
  nextSecretAt: Date | null
}

/**
 * Webhooks with events that need deliveries, with due deliveries, or, if disabled, with deliveries to end. A
 * webhook that pauses after failures has no work. Lists one webhook of each company, then the second of each,
 * and so on. `cursor` determines which company and which of its webhooks come first. `null` means all workspaces.
 *
 * Doesn't use `exists`, which PostgreSQL may turn into a hash of all open deliveries: that takes longer the
 * more there are. A search for one row uses the index.
 */
export async function listWork(
  db: Queryable,
  {
    workspaceIds,
    now,
    openMax,
    cursor,
    limit,
  }: {
    workspaceIds: readonly WorkspaceId[] | null
    now: Date
    openMax: number
    cursor: WorkCursor
    limit: number
  },
): Promise<WebhookWork[]> {
  const companyId = cursor.companyId ?? FIRST_ID
  const inTurn = sql`next.place, next.company_id > ${companyId}::uuid desc, next.company_id`
  const hasDue = sql`w.open_count > 0 and coalesce((
    select true
      from webhook_delivery d
     where d.workspace_id = w.workspace_id and d.webhook_id = w.id
       and d.status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED') and d.due_at <= ${now}
     order by d.due_at
     limit 1), false)`
  const { rows } = await sql<WorkRow>`
    ${KEEP_PLAN}
    with work as (
      select w.workspace_id, w.id, w.company_id, h.seq as head_seq,
             count(*) over (partition by w.company_id) as company_work_count,
             row_number() over (
               partition by w.company_id
               order by w.id > coalesce(served.webhook_id, ${FIRST_ID}::uuid) desc, w.id) as place
        from ${webhooksAndHeads(workspaceIds)}
        left join unnest(${[...cursor.webhookIds.keys()]}::uuid[],
                         ${[...cursor.webhookIds.values()]}::uuid[])
          as served (company_id, webhook_id) on served.company_id = w.company_id
       where (w.status = 'DISABLED' or w.resting_until is null or w.resting_until <= ${now})
         and case when w.status = 'ENABLED'
                  then (h.seq > w.seen_seq and w.open_count < ${openMax}) or (${hasDue})
                  else w.open_count > 0 end
    ), next as materialized (
      select * from work as next order by ${inTurn} limit ${sql.lit(limit)}
    )
    select w.workspace_id as "workspaceId", w.id as "webhookId", w.company_id as "companyId",
           w.project_id as "projectId", w.project_since_seq as "projectSinceSeq",
           w.past_project_id as "pastProjectId", w.filter, w.past_filter as "pastFilter", w.url,
           w.headers, w.status = 'ENABLED' as "isEnabled",
           w.disabled_reason as "disabledReason", w.secret, w.next_secret as "nextSecret",
           w.next_secret_at as "nextSecretAt", w.seen_seq as "seenSeq", head_seq as "headSeq",
           w.open_count as "openCount", w.failure_count as "failureCount", ${hasDue} as "hasDue",
           company_work_count as "companyWorkCount"
      from next
      cross join lateral (
        select * from webhook where workspace_id = next.workspace_id and id = next.id limit 1) as w
     order by ${inTurn}`.execute(db)
  return rows.map(({ secret, nextSecret, nextSecretAt, ...row }) => ({
    ...row,
    workspaceId: assertId(row.workspaceId),
    webhookId: assertId(row.webhookId),
    companyId: assertId(row.companyId),
    projectId: row.projectId === null ? null : assertId(row.projectId),
    pastProjectId: row.pastProjectId === null ? null : assertId(row.pastProjectId),
    secrets: { current: secret, next: nextSecret, nextAt: nextSecretAt },
  }))
}

/** The subqueries keep the planner from another order of joins, which would read all webhooks. */
function webhooksAndHeads(workspaceIds: readonly WorkspaceId[] | null): RawBuilder<unknown> {
  if (!workspaceIds) return sql`webhook w join chain_head h on h.workspace_id = w.workspace_id`
  return sql`unnest(${workspaceIds}::uuid[]) as searched (workspace_id)
       cross join lateral (
         select * from webhook where workspace_id = searched.workspace_id offset 0) as w
       cross join lateral (
         select seq from chain_head where workspace_id = w.workspace_id limit 1) as h`
}

/** Workspaces with a webhook that is enabled, or that is disabled and has deliveries to end. */
export async function listWatchedWorkspaces(db: Queryable): Promise<Set<WorkspaceId>> {
  const rows = await db
    .selectFrom('webhook')
    .select('workspace_id')
    .distinct()
    .where((eb) => eb.or([eb('status', '=', 'ENABLED'), eb('open_count', '>', 0)]))
    .execute()
  return new Set(rows.map(({ workspace_id }) => assertId<'workspace'>(workspace_id)))
}

type LeasedRow = {
  deliveryId: string
  webhookId: string
  sequence: number
  attempt: number
  scheduleFrom: number
  eventSeq: number | null
  eventId: string
  createdAt: Date
}
type FanOutWork = Selection &
  Pick<
    WebhookWork,
    'workspaceId' | 'webhookId' | 'projectSinceSeq' | 'pastProjectId' | 'pastFilter' | 'seenSeq'
  >
type EventColumns = { [Name in keyof EventRow]: EventRow[Name] | null }

/**
 * Creates the deliveries of the webhook's next events, up to `toSeq`, each exactly once: the same statement
 * advances `seen_seq` from the value the caller read. Leases and returns the first deliveries while there is
 * `room`. The others wait. Returns null if another node was first, or if the webhook was disabled or paused
 * since the caller read it.
 */
export async function fanOut(
  db: Queryable,
  {
    webhook,
    toSeq,
    room,
    lease,
    now,
  }: { webhook: FanOutWork; toSeq: number; room: LeaseRoom; lease: Lease; now: Date },
): Promise<LeasedWork[] | null> {
  const { workspaceId, webhookId, projectSinceSeq, seenSeq } = webhook
  const past = { projectId: webhook.pastProjectId, filter: webhook.pastFilter }
  const { rows } = await sql<EventColumns & LeasedRow & { isMoved: boolean }>`
    ${KEEP_PLAN}
    with fresh as materialized (
      select ${EVENT_COLUMNS}
        from event
       where workspace_id = ${workspaceId} and seq > ${seenSeq} and seq <= ${toSeq}
         and case when seq > ${projectSinceSeq}::bigint
                  then ${isSelected(webhook)} else ${isSelected(past)} end
       order by seq
    ), moved as (
      update webhook
         set seen_seq = ${toSeq},
             last_sequence = last_sequence + (select count(*) from fresh),
             open_count = open_count + (select count(*) from fresh),
             filtered_count = filtered_count + ${toSeq - seenSeq}::bigint - (select count(*) from fresh)
       where workspace_id = ${workspaceId} and id = ${webhookId} and seen_seq = ${seenSeq}
         and project_since_seq = ${projectSinceSeq}
         and status = 'ENABLED' and (resting_until is null or resting_until <= ${now})
      returning last_sequence - (select count(*) from fresh) as before
    ), numbered as (
      select id, seq, place, place <= ${room.count} and bytes_before < ${room.bytes} as is_leased
        from (select id, seq, row_number() over (order by seq) as place,
                     sum(${PART_BYTES}) over (order by seq rows unbounded preceding)
                       - (${PART_BYTES}) as bytes_before
                from fresh) as measured
    ), made as (
      insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id,
                                    status, attempt, due_at, lease, created_at, updated_at)
      select ${workspaceId}, ${webhookId}, gen_random_uuid(), before + place, seq, id,
             case when is_leased then 'SENDING' else 'PENDING' end,
             case when is_leased then 1 else 0 end,
             case when is_leased then ${lease.until}::timestamptz else ${now}::timestamptz end,
             case when is_leased then ${lease.token}::uuid end, ${now}, ${now}
        from numbered, moved
      returning id, sequence, event_seq, status
    )
    select true as "isMoved", made.id as "deliveryId", made.sequence, fresh.*
      from moved
      left join made on made.status = 'SENDING'
      left join fresh on fresh.seq = made.event_seq
     order by made.sequence`.execute(db)
  if (rows.length === 0) return null
  return rows.flatMap((row) =>
    row.deliveryId === null
      ? []
      : leasedWorkOf({
          ...row,
          webhookId,
          attempt: 1,
          scheduleFrom: 0,
          eventSeq: row.seq,
          eventId: row.id ?? '',
          createdAt: now,
        }),
  )
}

/**
 * The columns that are not null and never updated, which an upsert must list. An upsert finds each row by its
 * primary key, whatever the statistics say. It never inserts, because its rows are locked.
 */
export const UNCHANGED = sql.raw('workspace_id, webhook_id, id, sequence, event_id, created_at')

/**
 * Leases due deliveries of a webhook while there is `room`, oldest first, including those whose lease has
 * expired. Leases none if the webhook was disabled or paused since the caller read it.
 *
 * As in `settleAttempts`, the plan must not depend on statistics. The search takes its ids from the webhook's
 * row: for a workspace without statistics, PostgreSQL would expect a single delivery and read all of them.
 * Each `order by` fits only one index. Rows are written by upsert.
 */
export async function claimDue(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    room,
    lease,
    now,
    isProbe = false,
  }: {
    workspaceId: WorkspaceId
    webhookId: WebhookId
    room: LeaseRoom
    lease: Lease
    now: Date
    /** Leases the newest first, so that a delivery the receiver always rejects doesn't block the probe. */
    isProbe?: boolean
  },
): Promise<LeasedWork[]> {
  const inOrder = isProbe ? sql`due_at desc, id` : sql`due_at, id`
  const { rows } = await sql<EventColumns & LeasedRow>`
    ${KEEP_PLAN}
    with due as materialized (
      select d.*
        from webhook w
       cross join lateral (
         select ${UNCHANGED}, attempt, due_at, event_seq
           from webhook_delivery
          where workspace_id = w.workspace_id and webhook_id = w.id
            and status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED') and due_at <= ${now}
          order by due_at ${isProbe ? sql`desc` : sql`asc`}
          limit ${sql.lit(roundDown(room.count))}
            for update skip locked) as d
       where w.workspace_id = ${workspaceId} and w.id = ${webhookId} and w.status = 'ENABLED'
         and (w.resting_until is null or w.resting_until <= ${now})
    ), sized as materialized (
      select due.*, coalesce((select ${PART_BYTES} from ${eventOf('due')}), 0) as bytes from due
    ), measured as materialized (
      select ${UNCHANGED}, attempt,
             sum(bytes) over (order by ${inOrder} rows unbounded preceding) - bytes as bytes_before
        from sized
    ), leased as (
      insert into webhook_delivery as d
             (${UNCHANGED}, status, attempt, lease, due_at, updated_at)
      select ${UNCHANGED}, 'SENDING', attempt + 1, ${lease.token}::uuid,
             ${lease.until}::timestamptz, ${now}::timestamptz
        from measured
       where bytes_before < ${room.bytes}
      on conflict (workspace_id, id) do update
         set status = excluded.status, attempt = excluded.attempt, lease = excluded.lease,
             due_at = excluded.due_at, updated_at = excluded.updated_at
      returning d.workspace_id, d.event_seq, d.id as "deliveryId", d.webhook_id as "webhookId",
                d.sequence, d.attempt, d.schedule_from as "scheduleFrom",
                d.event_seq as "eventSeq", d.event_id as "eventId", d.created_at as "createdAt"
    )
    select leased.*, e.*
      from leased
      left join lateral (select ${EVENT_COLUMNS} from ${eventOf('leased')}) as e on true
     order by leased.sequence`.execute(db)
  return rows.map(leasedWorkOf)
}

/** The event of a delivery. The order forces the index on the event's seq: no other index has it. */
export function eventOf(delivery: 'd' | 'due' | 'leased'): RawBuilder<unknown> {
  const seq = sql.ref(`${delivery}.event_seq`)
  return sql`event
     where event.workspace_id = ${sql.ref(`${delivery}.workspace_id`)}
       and event.seq between ${seq} and ${seq}
     order by event.seq
     limit 1`
}

/** Rounds to a power of two: a cached plan needs a literal limit, and each limit has its own plan. */
function roundDown(limit: number): number {
  return 2 ** Math.floor(Math.log2(limit))
}

function leasedWorkOf(row: EventColumns & LeasedRow): LeasedWork {
  const { deliveryId, webhookId, sequence, attempt, scheduleFrom, eventSeq, eventId, createdAt } =
    row
  return {
    delivery: {
      id: assertId(deliveryId),
      webhookId: assertId(webhookId),
      sequence,
      attempt,
      scheduleFrom,
      eventSeq,
      eventId: assertId(eventId),
      createdAt,
    },
    event: isWhole(row) ? toEvent(row) : null,
  }
}

/** An outer join returns all columns of an event or none. */
function isWhole(row: EventColumns): row is EventRow {
  return row.seq !== null
}

/**
 * Fails up to `limit` waiting deliveries of a disabled webhook, and returns how many. Fails none if the
 * webhook was enabled since the caller read it. A lock keeps it from being enabled meanwhile.
 */
export async function failWaiting(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    reason,
    limit,
    now,
  }: { workspaceId: WorkspaceId; webhookId: WebhookId; reason: string; limit: number; now: Date },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with held as materialized (
      select workspace_id, id
        from webhook
       where workspace_id = ${workspaceId} and id = ${webhookId} and status = 'DISABLED'
         for update
    ), waiting as materialized (
      select d.*
        from held
       cross join lateral (
         select ${UNCHANGED}, attempt, due_at
           from webhook_delivery
          where workspace_id = held.workspace_id and webhook_id = held.id
            and status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED')
            and (status <> 'SENDING' or due_at <= ${now})
          order by due_at
          limit ${limit}
            for update skip locked) as d
    ), ended as (
      insert into webhook_delivery as d
             (${UNCHANGED}, status, attempt, due_at, failure_reason, updated_at)
      select ${UNCHANGED}, 'FAILED', attempt, due_at, ${reason}::text, ${now}::timestamptz
        from waiting
      on conflict (workspace_id, id) do update
         set status = excluded.status, failure_reason = excluded.failure_reason, lease = null,
             updated_at = excluded.updated_at
      returning d.id
    ), counted as (
      update webhook
         set open_count = open_count - (select count(*) from ended)
       where workspace_id = ${workspaceId} and id = ${webhookId}
         and exists (select from ended)
    )
    select count(*) as count from ended`.execute(db)
  return rows[0]?.count ?? 0
}

/**
 * Releases the leases of deliveries that were not sent completely, so that any node can send them at once.
 */
export async function releaseLeases(
  db: Queryable,
  leased: readonly Pick<
    Settlement,
    'workspaceId' | 'webhookId' | 'deliveryId' | 'sequence' | 'lease'
  >[],
  now: Date,
): Promise<void> {
  await sql`
    with held as materialized (
      select d.*
        from unnest(${leased.map((one) => one.workspaceId)}::uuid[],
                    ${leased.map((one) => one.webhookId)}::uuid[],
                    ${leased.map((one) => one.deliveryId)}::uuid[],
                    ${leased.map((one) => one.sequence)}::bigint[],
                    ${leased.map((one) => one.lease)}::uuid[])
          as l (workspace_id, webhook_id, id, sequence, lease)
       cross join lateral (
         select ${UNCHANGED}, attempt
           from webhook_delivery
          where workspace_id = l.workspace_id and webhook_id = l.webhook_id
            and sequence = l.sequence and id = l.id and lease = l.lease
          limit 1
            for update) as d
    )
    insert into webhook_delivery as d (${UNCHANGED}, status, attempt, due_at, updated_at)
    select ${UNCHANGED}, 'PENDING', attempt - 1, ${now}::timestamptz, ${now}::timestamptz
      from held
    on conflict (workspace_id, id) do update
       set status = excluded.status, attempt = excluded.attempt, lease = null,
           due_at = excluded.due_at, updated_at = excluded.updated_at
     where d.status = 'SENDING'`.execute(db)
}
