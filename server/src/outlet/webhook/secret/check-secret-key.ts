import { OperatorError } from '../../../errors.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Secret } from '../../../platform/secret/secret.ts'
import type { SecretBox } from '../../../platform/secret/secret-box.ts'
import { fingerprintOf } from '../../../platform/secret/secret-key.ts'
import { openHeaders } from '../send/extra-headers.ts'
import { secretsAt } from './rotation.ts'
import {
  insertFingerprintIfAbsent,
  listSecrets,
  readFingerprint,
  replaceFingerprint,
  type WebhookSecrets,
} from './secret-key-store.ts'
import { webhookSecretBox } from './webhook-secret.ts'

const WEBHOOKS_PER_PAGE = 500

type KeyDeps = { db: Queryable; secretKey: Secret<Buffer>; clock: Clock }

/**
 * Throws if this node's secret key is not the one this database is used with: the node couldn't send other
 * nodes' webhooks, and would store secrets that they can't read. The first node records its key.
 */
export async function checkSecretKey({ db, secretKey, clock }: KeyDeps): Promise<void> {
  if ((await readFingerprint(db)) === null) {
    await insertFingerprintIfAbsent(db, fingerprintOf(secretKey), new Date(clock()))
  }
  await refuseOtherSecretKey({ db, secretKey })
}

/** Throws if the database is used with another secret key. Changes nothing. Before the first node, every key passes. */
export async function refuseOtherSecretKey({
  db,
  secretKey,
}: Pick<KeyDeps, 'db' | 'secretKey'>): Promise<void> {
  const known = await readFingerprint(db)
  if (known === null || known.equals(fingerprintOf(secretKey))) return
  throw new OperatorError(
    'This node has a different secret key than the one that the database requires. Set ANNALS_SECRET_KEY ' +
      'or ANNALS_SECRET_KEY_FILE to the key of the other nodes; with the embedded engine, restore ' +
      'secret.key in the data folder. If that key is lost, or you are changing it, stop all nodes and ' +
      'run "annals secret-key accept" with the new key.',
  )
}

/** Records this key as the database's key. Returns the webhooks whose secrets or headers it can't read. */
export async function acceptSecretKey(deps: KeyDeps): Promise<WebhookSecrets[]> {
  await replaceFingerprint(deps.db, fingerprintOf(deps.secretKey), new Date(deps.clock()))
  return await listUnreadable(deps)
}

async function listUnreadable({ db, secretKey, clock }: KeyDeps): Promise<WebhookSecrets[]> {
  const box = webhookSecretBox(secretKey)
  const nowMs = clock()
  const unreadable: WebhookSecrets[] = []
  let after: WebhookSecrets | null = null
  do {
    const page: WebhookSecrets[] = await listSecrets(db, { after, limit: WEBHOOKS_PER_PAGE })
    unreadable.push(...page.filter((webhook) => !isReadable(webhook, box, nowMs)))
    after = page.at(-1) ?? null
  } while (after !== null)
  return unreadable
}

function isReadable(
  { webhookId, secrets, headers }: WebhookSecrets,
  box: SecretBox,
  nowMs: number,
) {
  if (openHeaders(headers, webhookId, box) === null) return false
  const { current, next } = secretsAt(secrets, nowMs)
  return [current, ...(next ? [next] : [])].every((sealed) => box.open(sealed, webhookId) !== null)
}
