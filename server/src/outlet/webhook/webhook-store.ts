import { type Selectable, sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type ProjectId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Tables } from '../../platform/pg/tables.ts'
import { COMPANY_BOUNDS } from '../../tenancy/plans.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import type { WebhookId } from './delivery/delivery.ts'
import {
  type SealedSecrets,
  type Target,
  type Webhook,
  WEBHOOK_EVENTS,
  WEBHOOK_STATUSES,
  type WebhookEvent,
  type WebhookFilter,
} from './webhook.ts'

type NewWebhook = {
  id: WebhookId
  companyId: CompanyId
  workspaceId: WorkspaceId
  projectId: ProjectId | null
  filter: WebhookFilter | null
  name: string | null
  url: string
  headers: SealedHeaders
  events: readonly WebhookEvent[]
  secret: Buffer
  secretLabel: string | null
  now: Date
}

/** `values` contains the headers, encrypted, or null if there are none. */
type SealedHeaders = { values: Buffer | null; names: string[] }

/** Call it inside a transaction. The webhook gets events after the workspace's current head. */
export async function insertWebhook(db: Queryable, webhook: NewWebhook): Promise<Webhook> {
  await lockCompany(db, webhook.companyId)
  const { count } = await db
    .selectFrom('webhook')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('workspace_id', '=', webhook.workspaceId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  if (count >= COMPANY_BOUNDS.webhooksPerWorkspaceMax) {
    throw new ApiError('conflict', {
      message: `A workspace can have at most ${COMPANY_BOUNDS.webhooksPerWorkspaceMax} webhooks. Delete one first.`,
    })
  }
  const row = await db
    .insertInto('webhook')
    .values({
      workspace_id: webhook.workspaceId,
      id: webhook.id,
      company_id: webhook.companyId,
      project_id: webhook.projectId,
      filter: jsonOf(webhook.filter),
      name: webhook.name,
      url: webhook.url,
      headers: webhook.headers.values,
      header_names: webhook.headers.names,
      status: 'ENABLED',
      events: [...webhook.events],
      secret: webhook.secret,
      secret_label: webhook.secretLabel,
      seen_seq: headSeq(webhook.workspaceId),
      created_at: webhook.now,
      updated_at: webhook.now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toWebhook(row)
}

export async function listWorkspaceWebhooks(
  db: Queryable,
  { companyId, workspaceId }: { companyId: CompanyId; workspaceId: WorkspaceId },
): Promise<Webhook[]> {
  const rows = await db
    .selectFrom('webhook')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('company_id', '=', companyId)
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(COMPANY_BOUNDS.webhooksPerWorkspaceMax)
    .execute()
  return rows.map(toWebhook)
}

type WebhookPage = {
  companyId: CompanyId
  workspaceIds: readonly WorkspaceId[]
  /** Null for the first page. */
  after: Pick<Webhook, 'workspaceId' | 'id'> | null
  limit: number
}

/** By workspace, and oldest first in each. */
export async function listWebhooksOf(
  db: Queryable,
  { companyId, workspaceIds, after, limit }: WebhookPage,
): Promise<Webhook[]> {
  let query = db
    .selectFrom('webhook')
    .selectAll()
    .where('company_id', '=', companyId)
    .where(sql<boolean>`workspace_id = any(${workspaceIds}::uuid[])`)
    .where('deleted_at', 'is', null)
  if (after) {
    query = query.where(
      sql<boolean>`(workspace_id, id) > (${after.workspaceId}::uuid, ${after.id}::uuid)`,
    )
  }
  const rows = await query.orderBy('workspace_id').orderBy('id').limit(limit).execute()
  return rows.map(toWebhook)
}

export type WebhookWithSecrets = Webhook & Target

/** Returns null if the webhook doesn't exist or belongs to another company. */
export async function findWebhook(
  db: Queryable,
  { companyId, webhookId }: { companyId: CompanyId; webhookId: WebhookId },
): Promise<WebhookWithSecrets | null> {
  const row = await db
    .selectFrom('webhook')
    .selectAll()
    .where('id', '=', webhookId)
    .where('company_id', '=', companyId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row ? withSecrets(row) : null
}

/** Leaves out webhooks that are disabled or deleted. */
export async function listTargets(
  db: Queryable,
  webhookIds: readonly WebhookId[],
): Promise<Map<string, Target>> {
  const rows = await db
    .selectFrom('webhook')
    .select(['id', 'url', 'secret', 'next_secret', 'next_secret_at', 'headers'])
    .where(sql<boolean>`id = any(${webhookIds}::uuid[])`)
    .where('status', '=', 'ENABLED')
    .execute()
  return new Map(
    rows.map((row) => [row.id, { url: row.url, secrets: secretsOf(row), headers: row.headers }]),
  )
}

/** Locks the webhook, so that others can't change it until the caller's transaction ends. */
export async function lockWebhook(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
): Promise<WebhookWithSecrets | null> {
  const row = await db
    .selectFrom('webhook')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .forUpdate()
    .executeTakeFirst()
  return row ? withSecrets(row) : null
}

/**
 * Fields that are left out stay. A new project or filter applies to later events. Earlier events still use
 * the old ones, so a second change is refused until they have their deliveries. A disabled webhook gets none
 * for them: enabling it moves `seen_seq` to the head.
 */
export async function updateWebhookSettings(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  change: {
    url?: string
    events?: readonly WebhookEvent[]
    projectId?: ProjectId | null
    filter?: WebhookFilter | null
    name?: string | null
    secretLabel?: string | null
    headers?: SealedHeaders
    now: Date
  },
): Promise<Webhook | null> {
  const isSelectionChanged = change.projectId !== undefined || change.filter !== undefined
  const row = await db
    .updateTable('webhook')
    .set({
      ...(change.url !== undefined && { url: change.url }),
      ...(change.events !== undefined && { events: [...change.events] }),
      ...(isSelectionChanged && {
        past_project_id: sql<string | null>`project_id`,
        past_filter: sql<string | null>`filter`,
        project_since_seq: headSeq(workspaceId),
      }),
      ...(change.projectId !== undefined && { project_id: change.projectId }),
      ...(change.filter !== undefined && { filter: jsonOf(change.filter) }),
      ...(change.name !== undefined && { name: change.name }),
      ...(change.secretLabel !== undefined && { secret_label: change.secretLabel }),
      ...(change.headers !== undefined && {
        headers: change.headers.values,
        header_names: change.headers.names,
      }),
      updated_at: change.now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .$if(isSelectionChanged, (query) =>
      query.where(sql<boolean>`(status = 'DISABLED' or seen_seq >= project_since_seq)`),
    )
    .returningAll()
    .executeTakeFirst()
  if (!row && isSelectionChanged) {
    throw new ApiError('conflict', {
      message:
        'Deliveries for events from before the last change of the project or filter are still being created. Try again later. If the receiver fails or is far behind, that can take hours. To change it now, disable the webhook, change it, enable it, and redeliver what it missed.',
    })
  }
  return row ? toWebhook(row) : null
}

/** Call it with the webhook locked. Setting `next` starts an overlap. */
export async function updateSecrets(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  {
    current,
    next,
    nextAt,
    secretLabel,
    now,
  }: SealedSecrets & Pick<Webhook, 'secretLabel'> & { now: Date },
): Promise<void> {
  await db
    .updateTable('webhook')
    .set({
      secret: current,
      next_secret: next,
      next_secret_at: nextAt,
      secret_label: secretLabel,
      updated_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/**
 * Returns null if it wasn't enabled, or has another URL than the given one. The dispatcher ends its
 * deliveries.
 */
export async function markWebhookDisabled(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  { reason, now, url }: { reason: string; now: Date; url?: string },
): Promise<Pick<Webhook, 'companyId' | 'name' | 'url'> | null> {
  const row = await db
    .updateTable('webhook')
    .set({ status: 'DISABLED', disabled_reason: reason, updated_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('status', '=', 'ENABLED')
    .$if(url !== undefined, (query) => query.where('url', '=', url ?? ''))
    .returning(['company_id', 'name', 'url'])
    .executeTakeFirst()
  return row ? { companyId: assertId(row.company_id), name: row.name, url: row.url } : null
}

/** For a plan without webhooks. Returns those that it disabled. */
export async function disableCompanyWebhooks(
  db: Queryable,
  companyId: CompanyId,
  { reason, now }: { reason: string; now: Date },
): Promise<Pick<Webhook, 'id' | 'url'>[]> {
  const rows = await db
    .updateTable('webhook')
    .set({ status: 'DISABLED', disabled_reason: reason, updated_at: now })
    .where('company_id', '=', companyId)
    .where('status', '=', 'ENABLED')
    .returning(['id', 'url'])
    .execute()
  return rows.map(({ id, url }) => ({ id: assertId(id), url }))
}

/** Returns false if it wasn't disabled. Events that arrived meanwhile get no automatic deliveries. */
export async function markWebhookEnabled(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  now: Date,
): Promise<boolean> {
  const result = await db
    .updateTable('webhook')
    .set({
      status: 'ENABLED',
      disabled_reason: null,
      seen_seq: headSeq(workspaceId),
      failure_count: 0,
      failing_since: null,
      resting_until: null,
      updated_at: now,
      enabled_group: sql<number>`transaction_group()`,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('status', '=', 'DISABLED')
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Returns false if it doesn't exist. It disappears at once, and the sweep worker deletes its deliveries. */
export async function markWebhookDeleted(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  now: Date,
): Promise<boolean> {
  const result = await db
    .updateTable('webhook')
    .set({
      status: 'DISABLED',
      disabled_reason: 'The webhook was deleted.',
      secret: Buffer.alloc(0),
      next_secret: null,
      next_secret_at: null,
      headers: null,
      header_names: [],
      updated_at: now,
      deleted_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

function headSeq(workspaceId: WorkspaceId) {
  return sql<number>`(select seq from chain_head where workspace_id = ${workspaceId})`
}

function jsonOf(filter: WebhookFilter | null): string | null {
  return filter && JSON.stringify(filter)
}

function withSecrets(row: Selectable<Tables['webhook']>): WebhookWithSecrets {
  return { ...toWebhook(row), secrets: secretsOf(row), headers: row.headers }
}

function secretsOf(
  row: Pick<Selectable<Tables['webhook']>, 'secret' | 'next_secret' | 'next_secret_at'>,
): SealedSecrets {
  return { current: row.secret, next: row.next_secret, nextAt: row.next_secret_at }
}

function toWebhook(row: Selectable<Tables['webhook']>): Webhook {
  return {
    id: assertId(row.id),
    companyId: assertId(row.company_id),
    workspaceId: assertId(row.workspace_id),
    projectId: row.project_id === null ? null : assertId(row.project_id),
    filter: row.filter,
    filteredCount: row.filtered_count,
    name: row.name,
    url: row.url,
    headerNames: row.header_names,
    status: WEBHOOK_STATUSES.find((status) => status === row.status) ?? 'DISABLED',
    disabledReason: row.disabled_reason,
    events: WEBHOOK_EVENTS.filter((event) => row.events.includes(event)),
    secretLabel: row.secret_label,
    nextSecretAt: row.next_secret_at,
    lastSuccessAt: row.last_success_at,
    lastFailureAt: row.last_failure_at,
    failureCount: row.failure_count,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
