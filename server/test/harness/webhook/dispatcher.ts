import { sql } from 'kysely'
import { createServiceAudit } from '../../../src/intake/audit-entry.ts'
import { createConnector } from '../../../src/outlet/webhook/send/connector.ts'
import {
  Dispatcher,
  type DispatcherOptions,
} from '../../../src/outlet/webhook/dispatch/dispatcher.ts'
import {
  NameResolver,
  type NameResolverOptions,
} from '../../../src/outlet/webhook/send/name-resolver.ts'
import { readRetryAfter } from '../../../src/outlet/webhook/dispatch/retry-schedule.ts'
import { Sender, type SenderOptions } from '../../../src/outlet/webhook/send/sender.ts'
import { systemClock } from '../../../src/platform/time/clock.ts'
import { newId } from '../../../src/platform/id.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import { createMetrics } from '../../../src/platform/metrics.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import { webhookSecretBox } from '../../../src/outlet/webhook/secret/webhook-secret.ts'
import type { CreatedCompany } from '../../../src/tenancy/create-company.ts'
import { startTestApp, type TestApp } from '../app/start-app.ts'
import { ANY_DESTINATION, SECRET } from './webhooks.ts'

/** An app that sends nothing itself: only the dispatchers that a test starts send deliveries. */
export const startSilentApp = () => startTestApp({ env: ANY_DESTINATION, role: 'api' })

/** Starts a dispatcher on the database of an app, until `own` is disposed. */
export function startDispatcher(
  own: AsyncDisposableStack,
  { app }: TestApp,
  {
    db = app.database.db,
    limits = {},
    clock = systemClock,
    random = () => 0,
    pacing = { isContended: () => false },
    names: nameOptions = {},
    sender: senderOptions = {},
  }: {
    db?: Queryable
    limits?: DispatcherOptions['limits']
    clock?: DispatcherOptions['clock']
    random?: DispatcherOptions['random']
    pacing?: DispatcherOptions['pacing']
    names?: Partial<NameResolverOptions>
    sender?: Partial<SenderOptions>
  } = {},
): Dispatcher {
  const rules = { mode: 'any', ports: [] } as const
  const names = own.use(new NameResolver({ mode: 'any', ...nameOptions }))
  const connect = createConnector({ rules, resolve: (hostname) => names.resolve(hostname) })
  const sender = own.use(new Sender({ connect, readRetryAfter, ...senderOptions }))
  return own.use(
    new Dispatcher({
      db,
      sender,
      box: webhookSecretBox(app.dataSource.secretKey),
      clock,
      random,
      pacing,
      logger: createLogger('silent'),
      metrics: createMetrics(),
      audit: createServiceAudit(clock),
      // Don't wait for hanging sends at the end of a test.
      limits: { stopMsMax: 1, ...limits },
    }),
  )
}

/** The same database. `onRows` gets the rows of every statement. */
export function observeRows(db: Queryable, onRows: (rows: readonly object[]) => void): Queryable {
  return db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      onRows(result.rows)
      return await Promise.resolve(result)
    },
  })
}

/** Creates more webhooks in one workspace than the API allows, in one statement. */
export async function insertManyWebhooks(
  { app }: TestApp,
  { company, workspace }: CreatedCompany,
  urls: readonly string[],
): Promise<void> {
  const box = webhookSecretBox(app.dataSource.secretKey)
  const ids = urls.map(() => newId<'webhook'>())
  await sql`
    insert into webhook (workspace_id, id, company_id, url, status, events, secret, seen_seq,
                         created_at, updated_at)
    select ${workspace.id}::uuid, id, ${company.id}::uuid, url, 'ENABLED',
           '{AUDIT_EVENT_CREATED}', secret, 0, now(), now()
      from unnest(${ids}::uuid[], ${[...urls]}::text[],
                  ${ids.map((id) => box.seal(SECRET, id))}::bytea[]) as w (id, url, secret)`.execute(
    app.database.db,
  )
}
