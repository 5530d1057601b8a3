import { type RawBuilder, sql } from 'kysely'
import { hiddenFromPlanner } from '../../../platform/pg/hidden-value.ts'
import { assertId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import {
  DELIVERY_STATUSES,
  type DeliveryId,
  type DeliveryStatus,
  ERROR_CLASSES,
  type ErrorClass,
  type WebhookId,
} from './delivery.ts'
import { eventOf, UNCHANGED } from '../dispatch/delivery-queue-store.ts'
import { isSelected } from './selection-store.ts'
import type { AttemptRecord } from '../dispatch/settlement.ts'
import type { Selection } from '../webhook.ts'

/** A delivery as shown to the webhook's owner. */
export type Delivery = {
  id: DeliveryId
  webhookId: WebhookId
  eventId: string
  /** Null for a test, which has no event. */
  eventSeq: number | null
  isTest: boolean
  status: DeliveryStatus
  attempt: number
  sequence: number
  url: string
  responseStatus: number | null
  durationMs: number | null
  errorClass: ErrorClass | null
  failureReason: string | null
  /** Null if the status is final or the delivery is being sent. */
  nextAttemptAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** At most this many deliveries of a webhook are open. Further events wait in the ledger. */
export const OPEN_PER_WEBHOOK_MAX = 100_000

export type WebhookRef = { workspaceId: WorkspaceId; webhookId: WebhookId }

type DeliveryRow = Omit<Delivery, 'id' | 'webhookId' | 'status' | 'errorClass'> & {
  id: string
  webhookId: string
  status: string
  errorClass: string | null
}

/** The URL is that of the last attempt, or the webhook's current URL before the first attempt. */
const COLUMNS = sql`
  d.id, d.webhook_id as "webhookId", d.event_id as "eventId",
  d.event_seq as "eventSeq", d.event_seq is null as "isTest",
  d.status, d.attempt, d.sequence, coalesce(d.attempts -> -1 ->> 'url', w.url) as url,
  d.response_status as "responseStatus", d.duration_ms as "durationMs",
  d.error_class as "errorClass", d.failure_reason as "failureReason",
  case when d.status in ('PENDING', 'RETRY_SCHEDULED') then d.due_at end as "nextAttemptAt",
  d.created_at as "createdAt", d.updated_at as "updatedAt"`

const FROM = sql`
  webhook_delivery d
  join webhook w on w.workspace_id = d.workspace_id and w.id = d.webhook_id`

/** Newest first below `before`, or oldest first above `after`: the order of the sequence. */
export type DeliveryPosition = { before: number | null } | { after: number }

/** A scan of this many deliveries takes a few milliseconds. */
const SCANNED_ROWS_MAX = 5_000

/**
 * Where a scan that starts at a position must stop: the sequence of its last delivery, or null if there are
 * fewer. Only failed deliveries have an index, so with any other status a scan could pass any number of
 * deliveries before the first match.
 */
export async function findScanEnd(
  db: Queryable,
  { workspaceId, webhookId, position }: WebhookRef & { position: DeliveryPosition },
): Promise<number | null> {
  const { rows } = await sql<{ sequence: number }>`
    select d.sequence
      from webhook_delivery d
     where ${sql.join(rangeConditions({ workspaceId, webhookId, position, end: null }), sql` and `)}
     order by d.sequence ${orderOf(position)}
    offset ${sql.lit(SCANNED_ROWS_MAX - 1)} limit 1`.execute(db)
  return rows[0]?.sequence ?? null
}

/** `end` is the last sequence to scan. It is required for a status without an index. */
export async function listDeliveries(
  db: Queryable,
  {
    status,
    limit,
    ...range
  }: WebhookRef & {
    status: DeliveryStatus | null
    position: DeliveryPosition
    end: number | null
    limit: number
  },
): Promise<Delivery[]> {
  const order = orderOf(range.position)
  const rows = sql`
    select * from webhook_delivery d
     where ${sql.join(rangeConditions(range), sql` and `)}`
  // The subquery keeps the planner from reading all deliveries of the status and sorting them.
  const deliveries = isScanned(status)
    ? sql`(${rows} order by d.sequence ${order} offset 0)`
    : sql`(${rows})`
  // A literal, so that the planner can use the partial index of failed deliveries.
  const condition = status === null ? sql`true` : sql`d.status = ${sql.lit(status)}`
  const { rows: found } = await sql<DeliveryRow>`
    select ${COLUMNS}
      from ${deliveries} as d
      join webhook w on w.workspace_id = d.workspace_id and w.id = d.webhook_id
     where ${condition}
     order by d.sequence ${order}
     limit ${limit}`.execute(db)
  return found.map(toDelivery)
}

/** Whether a status has no index, so that finding its deliveries needs a scan. */
export function isScanned(status: DeliveryStatus | null): boolean {
  return status !== null && status !== 'FAILED'
}

function rangeConditions({
  workspaceId,
  webhookId,
  position,
  end,
}: WebhookRef & { position: DeliveryPosition; end: number | null }): RawBuilder<unknown>[] {
  const isAscending = 'after' in position
  const start = isAscending ? position.after : position.before
  return [
    sql`d.workspace_id = ${hiddenFromPlanner(workspaceId)}`,
    sql`d.webhook_id = ${webhookId}`,
    ...(start === null ? [] : [sql`d.sequence ${isAscending ? sql`>` : sql`<`} ${start}`]),
    ...(end === null ? [] : [sql`d.sequence ${isAscending ? sql`<=` : sql`>=`} ${end}`]),
  ]
}

function orderOf(position: DeliveryPosition): RawBuilder<unknown> {
  return 'after' in position ? sql`asc` : sql`desc`
}

export async function findDelivery(
  db: Queryable,
  { workspaceId, webhookId, deliveryId }: WebhookRef & { deliveryId: DeliveryId },
): Promise<(Delivery & { attempts: AttemptRecord[] }) | null> {
  const { rows } = await sql<DeliveryRow & { attempts: AttemptRecord[] }>`
    select ${COLUMNS}, d.attempts
      from (select * from webhook_delivery
             where workspace_id = ${hiddenFromPlanner(workspaceId)} and id = ${deliveryId}
             limit 1) as d
      join webhook w on w.workspace_id = d.workspace_id and w.id = d.webhook_id
     where d.webhook_id = ${webhookId}`.execute(db)
  const [row] = rows
  return row ? { ...toDelivery(row), attempts: row.attempts } : null
}

/** The deliveries of one event, sorted by webhook. */
export async function listEventDeliveries(
  db: Queryable,
  { workspaceId, eventSeq, limit }: { workspaceId: WorkspaceId; eventSeq: number; limit: number },
): Promise<Delivery[]> {
  const { rows } = await sql<DeliveryRow>`
    select ${COLUMNS}
      from ${FROM}
     where d.workspace_id = ${hiddenFromPlanner(workspaceId)} and d.event_seq = ${eventSeq}
       and w.deleted_at is null
     order by d.webhook_id
     limit ${limit}`.execute(db)
  return rows.map(toDelivery)
}

/** Adds a delivery without an event, due at once. Returns its sequence, or null if the webhook takes none. */
export async function insertTest(
  db: Queryable,
  { workspaceId, webhookId, id, now }: WebhookRef & { id: DeliveryId; now: Date },
): Promise<number | null> {
  const { rows } = await sql<{ sequence: number }>`
    with numbered as (
      update webhook
         set last_sequence = last_sequence + 1, open_count = open_count + 1
       where workspace_id = ${workspaceId} and id = ${webhookId} and status = 'ENABLED'
         and open_count < ${OPEN_PER_WEBHOOK_MAX}
      returning last_sequence
    )
    insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_id, status, attempt,
                                  due_at, created_at, updated_at)
    select ${workspaceId}, ${webhookId}, ${id}, last_sequence, ${id}, 'PENDING', 0, ${now}, ${now}, ${now}
      from numbered
    returning sequence`.execute(db)
  return rows[0]?.sequence ?? null
}

/**
 * Schedules a delivery again, with a new retry schedule. Returns false if it is already pending or being
 * sent, or if its event is no longer in the table.
 */
export async function redeliver(
  db: Queryable,
  { workspaceId, webhookId, deliveryId, now }: WebhookRef & { deliveryId: DeliveryId; now: Date },
): Promise<boolean> {
  const chosen = sql`
    select d.*
      from (select * from webhook_delivery
             where workspace_id = ${hiddenFromPlanner(workspaceId)} and id = ${deliveryId}
             limit 1
               for update) as d
     where d.webhook_id = ${webhookId} and d.status in ('SUCCEEDED', 'FAILED', 'RETRY_SCHEDULED')
       and (d.event_seq is null or (select true from ${eventOf('d')}))`
  return (await resend(db, { workspaceId, webhookId, now }, chosen)) === 1
}

/** Schedules failed deliveries of a range of events again, oldest first. Returns how many. */
export async function redeliverFailed(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    seqs,
    limit,
    now,
  }: WebhookRef & { seqs: { from: number; to: number }; limit: number; now: Date },
): Promise<number> {
  const chosen = sql`
    select d.* from webhook_delivery d
     where d.workspace_id = ${hiddenFromPlanner(workspaceId)}
       and d.webhook_id = ${hiddenFromPlanner(webhookId)}
       and d.status = 'FAILED' and d.event_seq >= ${seqs.from} and d.event_seq <= ${seqs.to}
       and (select true from ${eventOf('d')})
     order by d.event_seq
     limit ${limit}
       for update of d skip locked`
  return await resend(db, { workspaceId, webhookId, now }, chosen)
}

async function resend(
  db: Queryable,
  { workspaceId, webhookId, now }: WebhookRef & { now: Date },
  chosen: RawBuilder<unknown>,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with chosen as materialized (${chosen}), ${resendChosen({ workspaceId, webhookId, now })}
    select count(*) as count from chosen`.execute(db)
  return rows[0]?.count ?? 0
}

/** The part of a statement that schedules all rows of `chosen` again, with a new retry schedule. */
export function resendChosen({
  workspaceId,
  webhookId,
  now,
}: WebhookRef & { now: Date }): RawBuilder<unknown> {
  return sql`again as (
      insert into webhook_delivery as d (${UNCHANGED}, status, attempt, due_at, updated_at)
      select ${UNCHANGED}, 'PENDING', attempt, ${now}::timestamptz, ${now}::timestamptz
        from chosen
      on conflict (workspace_id, id) do update
         set status = excluded.status, due_at = excluded.due_at, schedule_from = d.attempt,
             failure_reason = null, updated_at = excluded.updated_at
    ), counted as (
      update webhook
         set open_count = open_count + (select count(*) from chosen where status <> 'RETRY_SCHEDULED')
       where workspace_id = ${workspaceId} and id = ${webhookId} and exists (select from chosen)
    )`
}

/**
 * Creates deliveries for selected events that never had one, because the webhook was disabled when they
 * arrived or because its filter or project was another one. Only covers events in the range that fan-out has
 * already passed. Returns how many it created.
 */
export async function insertMissing(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    selection,
    seqs,
    now,
  }: WebhookRef & {
    selection: Selection
    seqs: { from: number; to: number }
    now: Date
  },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    with held as materialized (
      select workspace_id, id as webhook_id, last_sequence, seen_seq
        from webhook
       where workspace_id = ${workspaceId} and id = ${webhookId}
         for update
    ), missing as materialized (
      select e.id, e.seq, row_number() over (order by e.seq) as place
        from held
       cross join lateral (
         select id, seq, project_id, category, action, actor_id, resource_type from event
          where workspace_id = held.workspace_id and seq >= ${seqs.from} and seq <= ${seqs.to}
          order by seq
         offset 0) as e
       where e.seq <= held.seen_seq
         and ${isSelected(selection)}
         and (select true from webhook_delivery d
               where d.workspace_id = held.workspace_id and d.webhook_id = held.webhook_id
                 and d.event_seq between e.seq and e.seq
               order by d.event_seq
               limit 1) is null
    ), made as (
      insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id,
                                    status, attempt, due_at, created_at, updated_at)
      select ${workspaceId}, ${webhookId}, gen_random_uuid(), last_sequence + place, seq, missing.id,
             'PENDING', 0, ${now}, ${now}, ${now}
        from missing, held
      returning id
    ), counted as (
      update webhook
         set last_sequence = last_sequence + (select count(*) from missing),
             open_count = open_count + (select count(*) from missing)
       where workspace_id = ${workspaceId} and id = ${webhookId} and exists (select from missing)
    )
    select count(*) as count from made`.execute(db)
  return rows[0]?.count ?? 0
}

/** The first event from `seq` on, before `endSeq`, that has not been archived. */
export async function findEventFrom(
  db: Queryable,
  workspaceId: WorkspaceId,
  { seq, endSeq }: { seq: number; endSeq: number },
): Promise<{ id: string } | null> {
  const { rows } = await sql<{ id: string }>`
    select id from event
     where workspace_id = ${workspaceId} and seq >= ${seq} and seq < ${endSeq}
     order by seq limit 1`.execute(db)
  return rows[0] ?? null
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    ...row,
    id: assertId(row.id),
    webhookId: assertId(row.webhookId),
    status: DELIVERY_STATUSES.find((status) => status === row.status) ?? 'FAILED',
    errorClass: ERROR_CLASSES.find((name) => name === row.errorClass) ?? null,
  }
}
