import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { WebhookId } from '../delivery/delivery.ts'
import type { SealedSecrets } from '../webhook.ts'

/** The fingerprint of the secret key that this database's nodes use, or null before the first node. */
export async function readFingerprint(db: Queryable): Promise<Buffer | null> {
  const row = await db.selectFrom('secret_key_identity').select('fingerprint').executeTakeFirst()
  return row?.fingerprint ?? null
}

/** Does nothing if another node was first. */
export async function insertFingerprintIfAbsent(
  db: Queryable,
  fingerprint: Buffer,
  now: Date,
): Promise<void> {
  await db
    .insertInto('secret_key_identity')
    .values({ fingerprint, created_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Requires the owner role. */
export async function replaceFingerprint(
  db: Queryable,
  fingerprint: Buffer,
  now: Date,
): Promise<void> {
  const values = { fingerprint, created_at: now }
  await db
    .insertInto('secret_key_identity')
    .values(values)
    .onConflict((conflict) => conflict.column('is_only').doUpdateSet(values))
    .execute()
}

export type WebhookSecrets = {
  workspaceId: WorkspaceId
  webhookId: WebhookId
  secrets: SealedSecrets
  headers: Buffer | null
}

type SecretsRow = {
  workspaceId: string
  webhookId: string
  secret: Buffer
  nextSecret: Buffer | null
  nextSecretAt: Date | null
  headers: Buffer | null
}

/** The secrets and headers of all webhooks that are not deleted, page by page in primary key order. */
export async function listSecrets(
  db: Queryable,
  { after, limit }: { after: WebhookSecrets | null; limit: number },
): Promise<WebhookSecrets[]> {
  const { rows } = await sql<SecretsRow>`
    select workspace_id as "workspaceId", id as "webhookId", secret, next_secret as "nextSecret",
           next_secret_at as "nextSecretAt", headers
      from webhook
     where deleted_at is null
       and ${after === null ? sql`true` : sql`(workspace_id, id) > (${after.workspaceId}::uuid, ${after.webhookId}::uuid)`}
     order by workspace_id, id
     limit ${limit}`.execute(db)
  return rows.map(({ workspaceId, webhookId, secret, nextSecret, nextSecretAt, headers }) => ({
    workspaceId: assertId(workspaceId),
    webhookId: assertId(webhookId),
    secrets: { current: secret, next: nextSecret, nextAt: nextSecretAt },
    headers,
  }))
}
