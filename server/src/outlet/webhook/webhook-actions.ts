import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../errors.ts'
import { changedFields } from '../../platform/changed-fields.ts'
import { newId, parseId, type ProjectId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { SecretBox } from '../../platform/secret/secret-box.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { type Caller, changeAs } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import { PLAN_TERMS } from '../../tenancy/plans.ts'
import { failWaitingAndEnable } from './enable-webhook.ts'
import { type ExtraHeaders, openHeaders, sealHeaders } from './send/extra-headers.ts'
import { finishRotation, rotate } from './secret/rotation.ts'
import { newWebhookSecret } from './secret/webhook-secret.ts'
import {
  findWebhook,
  insertWebhook,
  lockWebhook,
  markWebhookDeleted,
  markWebhookDisabled,
  updateSecrets,
  updateWebhookSettings,
  type WebhookWithSecrets,
} from './webhook-store.ts'
import { type Webhook, WEBHOOK_EVENTS, type WebhookFilter } from './webhook.ts'

/*
 * Changes to webhooks, for keys and members alike. Each finds its webhook among those that the caller can
 * see, and makes the change together with its audit entry.
 */

type ChangeDeps = { db: Queryable; clock: Clock }

export type WebhookActionDeps = ChangeDeps & {
  /** Signals that there is a new webhook, or that there may be deliveries to send or to end. */
  wakeDispatcher: () => void
}

type SecretDeps = ChangeDeps & {
  /** Created for the purpose `webhook`. */
  box: SecretBox
}

/** Another company's id, an unknown id and an invalid id all get byte-identical 404s. */
export async function getWebhook(
  { db }: Pick<ChangeDeps, 'db'>,
  { companyId, canSeeWorkspace }: Pick<Caller, 'companyId' | 'canSeeWorkspace'>,
  id: string,
): Promise<WebhookWithSecrets> {
  const webhookId = parseId<'webhook'>(id)
  const webhook = webhookId && (await findWebhook(db, { companyId, webhookId }))
  if (!webhook || !canSeeWorkspace(webhook.workspaceId)) throw new ApiError('not_found')
  return webhook
}

/** The webhook as the resource of an audit entry. */
export function webhookResource({ id }: Pick<Webhook, 'id'>) {
  return { type: 'webhook', id }
}

export async function addWebhook(
  { db, clock, box, wakeDispatcher }: SecretDeps & WebhookActionDeps,
  caller: Caller,
  owner: { workspaceId: WorkspaceId; projectId: ProjectId | null },
  input: {
    url: string
    events?: Webhook['events']
    name?: string | null
    filter?: WebhookFilter | null
    headers?: ExtraHeaders
    customSecret?: string
    secretLabel?: string | null
  },
): Promise<{ webhook: Webhook; secret: string }> {
  const added = await changeAs(caller, db, async (trx, record) => {
    await refusePlanWithoutWebhooks(trx, caller)
    const nowMs = clock()
    const id = newId<'webhook'>(nowMs)
    const secret = input.customSecret ?? newWebhookSecret()
    const headers = input.headers ?? {}
    const webhook = await insertWebhook(trx, {
      ...owner,
      companyId: caller.companyId,
      id,
      name: input.name ?? null,
      filter: input.filter ?? null,
      url: input.url,
      headers: { values: sealHeaders(headers, id, box), names: Object.keys(headers) },
      events: input.events ?? WEBHOOK_EVENTS,
      secret: box.seal(secret, id),
      secretLabel: input.secretLabel ?? null,
      now: new Date(nowMs),
    })
    const { url, name, filter, headerNames } = webhook
    const metadata = { ...owner, url, name, filter, headerNames }
    record({ action: 'WEBHOOK_CREATED', resource: webhookResource(webhook), metadata })
    return { webhook, secret }
  })
  wakeDispatcher()
  return added
}

/**
 * A route's plan can be two seconds old. Under the lock it is current, so a downgrade disables every webhook
 * that was created before it.
 */
async function refusePlanWithoutWebhooks(
  trx: Queryable,
  { companyId }: Pick<Caller, 'companyId'>,
): Promise<void> {
  const plan = await lockCompany(trx, companyId)
  if (plan === null || PLAN_TERMS[plan].hasWebhooks) return
  throw new ApiError('plan_required', {
    message: `This operation requires the PRO plan or higher. The company is on the ${plan} plan.`,
  })
}

type WebhookChanges = Partial<
  Pick<Webhook, 'url' | 'events' | 'projectId' | 'filter' | 'name' | 'secretLabel'>
> & { headers?: ExtraHeaders }

/**
 * `projectId` must be a project of the webhook's workspace. Values that the webhook already has are not
 * written, so they don't count as an update.
 */
export async function changeWebhook(
  { db, clock, box }: SecretDeps,
  caller: Caller,
  webhook: Webhook,
  change: WebhookChanges,
): Promise<Webhook> {
  return await changeAs(caller, db, async (trx, record) => {
    const present = await lockWebhook(trx, webhook)
    if (!present) throw new ApiError('not_found')
    const { headers: _, ...settings } = change
    const { id, url, events, projectId, filter, name, secretLabel } = present
    const current = { url, events, projectId, filter, name, secretLabel }
    const changed = changedFields(current, settings)
    const headers = headersAfter(present, change, box)
    if (!changed && !headers) return present
    const names = headers && Object.keys(headers)
    const updated = await updateWebhookSettings(trx, present, {
      ...changed?.after,
      ...(headers && names && { headers: { values: sealHeaders(headers, id, box), names } }),
      now: new Date(clock()),
    })
    if (!updated) throw new ApiError('not_found')
    const metadata = {
      before: { ...changed?.before, ...(names && { headerNames: present.headerNames }) },
      after: { ...changed?.after, ...(names && { headerNames: names }) },
    }
    record({ action: 'WEBHOOK_CHANGED', resource: webhookResource(webhook), metadata })
    return updated
  })
}

/**
 * Returns null if the headers stay. They may contain credentials for the webhook's origin, so another origin
 * gets them only if the same change sets them.
 */
function headersAfter(
  present: WebhookWithSecrets,
  { url, headers }: WebhookChanges,
  box: SecretBox,
): ExtraHeaders | null {
  if (headers !== undefined) {
    const isSame = isDeepStrictEqual(openHeaders(present.headers, present.id, box), headers)
    return isSame ? null : headers
  }
  const isMoved = url !== undefined && new URL(url).origin !== new URL(present.url).origin
  return isMoved && present.headers !== null ? {} : null
}

export async function removeWebhook(
  deps: WebhookActionDeps,
  caller: Caller,
  webhookId: string,
): Promise<void> {
  const webhook = await getWebhook(deps, caller, webhookId)
  await changeAs(caller, deps.db, async (trx, record) => {
    const wasThere = await markWebhookDeleted(trx, webhook, new Date(deps.clock()))
    if (!wasThere) throw new ApiError('not_found')
    const metadata = { url: webhook.url }
    record({ action: 'WEBHOOK_DELETED', resource: webhookResource(webhook), metadata })
  })
  deps.wakeDispatcher()
}

/** On any plan: only the creation of a webhook requires one that includes webhooks. */
export async function startWebhook(deps: WebhookActionDeps, caller: Caller, webhookId: string) {
  const webhook = await getWebhook(deps, caller, webhookId)
  const isThere = await failWaitingAndEnable(deps.db, webhook, deps.clock, caller.lock)
  if (!isThere) throw new ApiError('not_found')
  deps.wakeDispatcher()
  return { id: webhook.id, status: 'ENABLED' as const }
}

/** The dispatcher then ends pending deliveries. */
export async function stopWebhook(deps: WebhookActionDeps, caller: Caller, webhookId: string) {
  const webhook = await getWebhook(deps, caller, webhookId)
  await changeAs(caller, deps.db, async (trx, record) => {
    const reason = `Disabled ${caller.via}.`
    const now = new Date(deps.clock())
    const disabled = await markWebhookDisabled(trx, webhook, { reason, now })
    if (disabled) record({ action: 'WEBHOOK_DISABLED', resource: webhookResource(webhook) })
  })
  deps.wakeDispatcher()
  return { id: webhook.id, status: 'DISABLED' as const }
}

/** A label belongs to its secret, so the new secret doesn't inherit it. */
export async function rotateSecret(
  deps: SecretDeps,
  caller: Caller,
  webhookId: string,
  input: { customSecret?: string; secretLabel?: string; overlapSeconds: number },
) {
  const { customSecret, overlapSeconds, secretLabel = null } = input
  const { workspaceId, id } = await getWebhook(deps, caller, webhookId)
  return await changeAs(caller, deps.db, async (trx, record) => {
    const secret = customSecret ?? newWebhookSecret()
    const nowMs = deps.clock()
    const webhook = await lockWebhook(trx, { workspaceId, id })
    if (!webhook) throw new ApiError('not_found')
    const fresh = deps.box.seal(secret, id)
    const secrets = rotate(webhook.secrets, fresh, { overlapMs: overlapSeconds * 1_000, nowMs })
    if (!secrets) throw overlapError(webhook.nextSecretAt)
    await updateSecrets(trx, webhook, { ...secrets, secretLabel, now: new Date(nowMs) })
    const nextSecretAt = secrets.nextAt?.toISOString() ?? null
    const resource = webhookResource(webhook)
    const metadata = { nextSecretAt, secretLabel }
    record({ action: 'WEBHOOK_SECRET_ROTATED', resource, metadata })
    return { id, secret, secretLabel, nextSecretAt }
  })
}

function overlapError(until: Date | null): ApiError {
  return new ApiError('conflict', {
    message: `A rotation is in progress until ${until?.toISOString()}. Finish it with finish-rotation, or replace both secrets by setting overlapSeconds to 0.`,
  })
}

/** Without a rotation, changes nothing. */
export async function finishOverlap({ db, clock }: ChangeDeps, caller: Caller, webhookId: string) {
  const { workspaceId, id } = await getWebhook({ db }, caller, webhookId)
  return await changeAs(caller, db, async (trx, record) => {
    const webhook = await lockWebhook(trx, { workspaceId, id })
    if (!webhook) throw new ApiError('not_found')
    if (webhook.nextSecretAt !== null) {
      const secrets = finishRotation(webhook.secrets)
      const { secretLabel } = webhook
      await updateSecrets(trx, webhook, { ...secrets, secretLabel, now: new Date(clock()) })
      const resource = webhookResource(webhook)
      record({ action: 'WEBHOOK_SECRET_ROTATED', resource, metadata: { overlapEnded: true } })
    }
    return { id, nextSecretAt: null }
  })
}
