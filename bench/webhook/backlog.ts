import { asOwner } from '../lib/engine.ts'
import { rssBytesOf } from '../lib/processes.ts'
import type { Service } from '../lib/service.ts'
import { type Latency, measurePaced } from './latency.ts'
import {
  createWebhook,
  createTenants,
  ingestBatches,
  type Part,
  SECONDS,
  type Setup,
  startNode,
  type Tenant,
} from './setup.ts'

const WAITING = Math.min(100_000, 10_000 * SECONDS)
/** Measured on a webhook with only these deliveries, and on one with many more behind them. */
const DRAINED = WAITING / 20
const RSS_EVERY_MS = 200

/** A large backlog must slow down neither other webhooks nor its own. */
export async function measureBacklog(setup: Setup): Promise<Part> {
  const [quiet, loaded] = createTenants(setup, 2)
  if (!quiet || !loaded) throw new Error('there is a workspace for each')
  await using service = await startNode(setup, 'all')
  await createWebhook(service, quiet, setup.receiver.urlOf('beside'))
  await ingestBatches(setup, service, { tenant: loaded, count: WAITING })

  await measureDrain(setup, service, { tenant: loaded, name: 'drain-warm-up', waiting: DRAINED })
  const short = await measureDrain(setup, service, {
    tenant: loaded,
    name: 'drain-short',
    waiting: DRAINED,
  })
  const before = await measureBeside(setup, service, quiet)
  const hanging = setup.receiver.urlOf('laden', { behavior: 'hang', nth: 1 })
  await insertBacklog(setup, loaded, await createWebhook(service, loaded, hanging), WAITING)
  const fresh = await measureBeside(setup, service, quiet)
  await analyze(setup)
  const beside = await measureBeside(setup, service, quiet)
  const long = await measureDrain(setup, service, {
    tenant: loaded,
    name: 'drain-long',
    waiting: WAITING,
  })
  return {
    rows: [
      { name: 'nothing waits', waiting: 0, ...before, drainedPerSecond: short },
      { name: 'many wait, just made', waiting: WAITING, ...fresh, drainedPerSecond: '' },
      { name: 'many wait, analysed', waiting: WAITING, ...beside, drainedPerSecond: long },
    ],
    figures: {
      'p50 of another webhook, to nothing waiting (≤ 2)': beside.p50Ms / before.p50Ms,
      'p99 of another webhook, to nothing waiting (≤ 2)': beside.p99Ms / before.p99Ms,
      'p50 of another webhook, just made (≤ 2)': fresh.p50Ms / before.p50Ms,
      'p99 of another webhook, just made (≤ 2)': fresh.p99Ms / before.p99Ms,
      'time of its own deliveries, to few waiting (≤ 2)': short / long,
      'growth of memory, MB (≤ 64)': Math.max(fresh.rssMbMax, beside.rssMbMax) - before.rssMbMax,
    },
  }
}

/** The latency of a webhook without a backlog, and the peak memory of the service. */
async function measureBeside(
  setup: Setup,
  service: Service,
  tenant: Tenant,
): Promise<Latency & { rssMbMax: number }> {
  let rssBytesMax = 0
  const timer = setInterval(() => {
    rssBytesMax = Math.max(rssBytesMax, rssBytesOf(service.pid))
  }, RSS_EVERY_MS)
  const latency = await measurePaced(setup, service, { tenant, name: 'beside' })
  clearInterval(timer)
  return { ...latency, rssMbMax: rssBytesMax / 2 ** 20 }
}

/** How fast the first deliveries of a backlog are sent, in deliveries per second. */
async function measureDrain(
  setup: Setup,
  service: Service,
  { tenant, name, waiting }: { tenant: Tenant; name: string; waiting: number },
): Promise<number> {
  const webhookId = await createWebhook(service, tenant, setup.receiver.urlOf(name))
  await insertBacklog(setup, tenant, webhookId, waiting)
  await setup.receiver.awaitEvents(name, DRAINED)
  const arrivedAtMs = [...(await setup.receiver.arrivals(name)).values()].slice(0, DRAINED)
  const tookMs = Math.max(...arrivedAtMs) - Math.min(...arrivedAtMs)
  return (DRAINED / tookMs) * 1_000
}

/**
 * Inserts the deliveries as the database owner, because clients can't create such a backlog at once:
 * while a receiver fails, its events stay in the ledger. The events are older than the webhook, so the
 * dispatcher creates no deliveries for them itself.
 */
async function insertBacklog(
  { connection }: Setup,
  { workspaceId }: Tenant,
  webhookId: string,
  count: number,
): Promise<void> {
  await asOwner(connection, (client) =>
    client.query(
      `with made as (
         insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id,
                                       status, attempt, due_at, created_at, updated_at)
         select workspace_id, $2, gen_random_uuid(), row_number() over (order by seq), seq, id,
                'PENDING', 0, now(), now(), now()
           from event
          where workspace_id = $1
          order by seq
          limit $3
         returning id
       )
       update webhook
          set last_sequence = (select count(*) from made), open_count = (select count(*) from made)
        where workspace_id = $1 and id = $2`,
      [workspaceId, webhookId, count],
    ),
  )
}

/**
 * Does what autovacuum would do a minute later. Measured before and after, because a service that started
 * on an empty table was several times slower before.
 */
async function analyze({ connection }: Setup): Promise<void> {
  await asOwner(connection, (client) => client.query('vacuum (analyze) webhook_delivery'))
}
