import { postPaced } from '../lib/paced-load.ts'
import type { Service } from '../lib/service.ts'
import { latencyOf } from './latency.ts'
import type { Behavior } from './receiver.ts'
import {
  acknowledge,
  createWebhook,
  createTenants,
  type Part,
  SECONDS,
  type Setup,
  startNode,
  type Tenant,
} from './setup.ts'

/** Each has its own port, so that the service sees separate origins. */
export const RECEIVERS = 100
const WORKSPACES = 4
const BAD_RECEIVERS = 10
const BAD_BEHAVIOURS = ['hang', 'reset', 'fail', 'drip'] as const
const EVENTS_PER_SECOND = 20

type CreatedWebhook = { name: string; behavior: Behavior; tenant: Tenant }

/** Ten of a hundred receivers misbehave, which must not affect the others. */
export async function measureBadReceivers(setup: Setup): Promise<Part> {
  const tenants = createTenants(setup, WORKSPACES)
  await using service = await startNode(setup, 'all')
  const webhooks = await createWebhooks(setup, service, tenants)
  const posted = await postPaced({
    port: service.port,
    keys: tenants.map(({ key }) => key),
    perSecond: EVENTS_PER_SECOND,
    seconds: SECONDS,
  })
  acknowledge(
    setup,
    posted.map(({ id }) => id),
  )
  const latenciesMs: number[] = []
  const healthy = webhooks.filter(({ behavior }) => behavior === 'ok')
  for (const { name, tenant } of healthy) {
    const own = posted.filter(({ key }) => key === tenant.key)
    const ids = own.map(({ id }) => id)
    setup.owed.set(name, ids)
    await setup.receiver.awaitEvents(name, own.length)
    const arrivals = await setup.receiver.arrivals(name)
    for (const { id, acknowledgedAtMs } of own) {
      latenciesMs.push((arrivals.get(id) ?? Infinity) - acknowledgedAtMs)
    }
  }
  const { events: deliveries, ...latency } = latencyOf(latenciesMs)
  return {
    rows: [{ name: `${healthy.length} healthy of ${RECEIVERS}`, deliveries, ...latency }],
    figures: { 'arrival at healthy receivers, p99 ms (≤ 2,000)': latency.p99Ms },
  }
}

async function createWebhooks(
  { receiver }: Setup,
  service: Service,
  tenants: readonly Tenant[],
): Promise<CreatedWebhook[]> {
  const webhooks: CreatedWebhook[] = []
  for (const [index, tenant] of tenants.entries()) {
    for (let nth = index; nth < RECEIVERS; nth += tenants.length) {
      // The bad receivers are spread over the workspaces, and each workspace gets different behaviors.
      const bad = BAD_BEHAVIOURS[(nth + Math.floor(nth / tenants.length)) % BAD_BEHAVIOURS.length]
      const behavior = nth < BAD_RECEIVERS ? (bad ?? 'hang') : 'ok'
      const name = `many-${nth}`
      await createWebhook(service, tenant, receiver.urlOf(name, { behavior, nth }))
      webhooks.push({ name, behavior, tenant })
    }
  }
  return webhooks
}
