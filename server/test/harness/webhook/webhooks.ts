import type { WebhookId } from '../../../src/outlet/webhook/delivery/delivery.ts'
import { insertWebhook } from '../../../src/outlet/webhook/webhook-store.ts'
import type { WebhookFilter } from '../../../src/outlet/webhook/webhook.ts'
import {
  type CompanyId,
  newId,
  type ProjectId,
  type WorkspaceId,
} from '../../../src/platform/id.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import { webhookSecretBox } from '../../../src/outlet/webhook/secret/webhook-secret.ts'
import type { SecretBox } from '../../../src/platform/secret/secret-box.ts'
import type { CreatedCompany } from '../../../src/tenancy/create-company.ts'
import { query } from '../database/engine.ts'
import type { TestApp } from '../app/start-app.ts'

/** For `startTestApp`: the tests' receivers listen on loopback and use plain HTTP. */
export const ANY_DESTINATION = { ANNALS_WEBHOOK_DESTINATIONS: 'any' }

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** Creates a webhook in the company's first workspace, bypassing the routes and their checks. */
export async function makeWebhook(
  { app }: TestApp,
  { company, workspace }: CreatedCompany,
  {
    url,
    projectId = null,
    filter = null,
    secret = SECRET,
  }: {
    url: string
    projectId?: ProjectId | null
    filter?: WebhookFilter | null
    secret?: string
  },
): Promise<WebhookId> {
  return await insertTestWebhook(app.database.db, {
    box: webhookSecretBox(app.dataSource.secretKey),
    companyId: company.id,
    workspaceId: workspace.id,
    projectId,
    filter,
    url,
    secret,
  })
}

export async function insertTestWebhook(
  db: Queryable,
  {
    box,
    secret = SECRET,
    projectId = null,
    filter = null,
    ...webhook
  }: {
    box: SecretBox
    companyId: CompanyId
    workspaceId: WorkspaceId
    projectId?: ProjectId | null
    filter?: WebhookFilter | null
    url: string
    secret?: string
  },
): Promise<WebhookId> {
  const id = newId<'webhook'>()
  await db.transaction().execute((transaction) =>
    insertWebhook(transaction, {
      ...webhook,
      id,
      projectId,
      filter,
      name: null,
      headers: { values: null, names: [] },
      events: ['AUDIT_EVENT_CREATED'],
      secret: box.seal(secret, id),
      secretLabel: null,
      now: new Date(),
    }),
  )
  return id
}

export type DeliveryRow = {
  id: string
  sequence: number
  eventId: string
  status: string
  attempt: number
  errorClass: string | null
  failureReason: string | null
}

/** Every delivery of a webhook as stored, in sequence order. */
export async function readDeliveries(
  { database }: TestApp,
  webhookId: WebhookId,
): Promise<DeliveryRow[]> {
  const rows = await query(
    database.connection,
    `select id, sequence::int as sequence, event_id as "eventId", status, attempt,
            error_class as "errorClass", failure_reason as "failureReason"
       from webhook_delivery where webhook_id = '${webhookId}' order by sequence`,
  )
  return JSON.parse(JSON.stringify(rows))
}
