import { percentile } from '../lib/http-load.ts'
import { postPaced } from '../lib/paced-load.ts'
import type { Service } from '../lib/service.ts'
import {
  acknowledge,
  createWebhook,
  createTenants,
  type Part,
  SECONDS,
  type Setup,
  startNode,
  type Tenant,
  WARM_UP_SECONDS,
} from './setup.ts'

const EVENTS_PER_SECOND = 200

export type Latency = { events: number; p50Ms: number; p99Ms: number; maxMs: number }

/** The latency from the response that an event is stored to the first byte at the receiver. */
export async function measureLatency(setup: Setup): Promise<Part> {
  const [tenant] = createTenants(setup, 1)
  if (!tenant) throw new Error('a company has a workspace')
  await using service = await startNode(setup, 'all')
  await createWebhook(service, tenant, setup.receiver.urlOf('latency'))
  const latency = await measurePaced(setup, service, { tenant, name: 'latency' })
  return {
    rows: [{ name: `${EVENTS_PER_SECOND} events/s`, ...latency }],
    figures: { 'commit to arrival, p50 ms': latency.p50Ms, 'p99 ms (≤ 250)': latency.p99Ms },
  }
}

export async function measurePaced(
  setup: Setup,
  { port }: Service,
  { tenant, name }: { tenant: Tenant; name: string },
): Promise<Latency> {
  const post = async (seconds: number) => {
    const posted = await postPaced({
      port,
      keys: [tenant.key],
      perSecond: EVENTS_PER_SECOND,
      seconds,
    })
    const ids = posted.map(({ id }) => id)
    acknowledge(setup, ids, name)
    await setup.receiver.awaitEvents(name, setup.owed.get(name)?.length ?? 0)
    return posted
  }
  await post(WARM_UP_SECONDS)
  const posted = await post(SECONDS)
  const arrivals = await setup.receiver.arrivals(name)
  return latencyOf(
    posted.map(({ id, acknowledgedAtMs }) => (arrivals.get(id) ?? Infinity) - acknowledgedAtMs),
  )
}

/** Slightly negative values are correct, because a delivery can arrive before the response. */
export function latencyOf(latenciesMs: readonly number[]): Latency {
  return {
    events: latenciesMs.length,
    p50Ms: percentile(latenciesMs, 0.5),
    p99Ms: percentile(latenciesMs, 0.99),
    maxMs: percentile(latenciesMs, 1),
  }
}
