import { requestBytes, runLoad } from '../lib/http-load.ts'
import { cpuUsOf, postgresCpuUs, postgresCpuUsOfUser } from '../lib/processes.ts'
import { sampleEvent } from '../lib/sample-event.ts'
import type { Service } from '../lib/service.ts'
import {
  acknowledge,
  createWebhook,
  createTenants,
  idsOf,
  type Part,
  SECONDS,
  type Setup,
  startNode,
  startWorker,
  type Tenant,
  WARM_UP_SECONDS,
  WORKER_USER,
} from './setup.ts'

const CONNECTIONS = 64

type Setting = {
  name: string
  tenant: Tenant | undefined
  api: Service
  worker?: Service
  /** The name of the webhook. Omitted to measure without one. */
  webhook?: string
}
type Row = { name: string; perSecond: number; requestUs: number; everythingUs: number }

/**
 * The CPU time per event of the nodes and PostgreSQL, with and without a webhook.
 *
 * The request path covers the time while events are ingested, except for the worker and its connections,
 * but including PostgreSQL's background work for deliveries. "Everything" lasts until the last delivery
 * has arrived.
 */
export async function measureCpu(setup: Setup): Promise<Part> {
  const [first, second, third, fourth] = createTenants(setup, 4)
  const rows: Row[] = []
  {
    await using api = await startNode(setup, 'api')
    rows.push(await measure(setup, { name: 'api, no webhook', tenant: first, api }))
    await using worker = await startWorker(setup)
    const webhook = 'cpu-apart'
    rows.push(
      await measure(setup, { name: 'api and worker', tenant: second, api, worker, webhook }),
    )
  }
  {
    await using api = await startNode(setup, 'all')
    rows.push(await measure(setup, { name: 'all, no webhook', tenant: third, api }))
    const webhook = 'cpu-together'
    rows.push(await measure(setup, { name: 'all, webhook', tenant: fourth, api, webhook }))
  }
  const [apiAlone, apart, allAlone, together] = rows
  const ratio = (a: Row | undefined, b: Row | undefined, field: 'requestUs' | 'everythingUs') =>
    (a?.[field] ?? Number.NaN) / (b?.[field] ?? Number.NaN)
  return {
    rows,
    figures: {
      'CPU of the request path to no webhook (≤ 1.3)': ratio(apart, apiAlone, 'requestUs'),
      'CPU of everything to no webhook, one node (≤ 2.2)': ratio(
        together,
        allAlone,
        'everythingUs',
      ),
      'CPU of everything to no webhook, worker apart': ratio(apart, apiAlone, 'everythingUs'),
    },
  }
}

async function measure(setup: Setup, setting: Setting): Promise<Row> {
  const { name, tenant, api, worker, webhook } = setting
  if (!tenant) throw new Error('there is a workspace for each setting')
  if (webhook !== undefined) {
    await createWebhook(api, tenant, setup.receiver.urlOf(webhook))
  }
  const drain = async () => {
    if (webhook === undefined) return
    await setup.receiver.awaitEvents(webhook, setup.owed.get(webhook)?.length ?? 0)
  }
  const load = async (seconds: number) => {
    const { ids, perSecond } = await ingestSingly(api, tenant, seconds)
    acknowledge(setup, ids, webhook)
    return { events: ids.length, perSecond }
  }
  const readCpu = () => {
    const workersPostgres = worker ? postgresCpuUsOfUser(setup.postmaster, WORKER_USER) : 0
    const postgres = postgresCpuUs(setup.postmaster)
    return {
      request: cpuUsOf(api.pid) + postgres - workersPostgres,
      everything: cpuUsOf(api.pid) + (worker ? cpuUsOf(worker.pid) : 0) + postgres,
    }
  }
  await load(WARM_UP_SECONDS)
  await drain()
  const before = readCpu()
  const { events, perSecond } = await load(SECONDS)
  const ingested = readCpu()
  await drain()
  const drained = readCpu()
  return {
    name,
    perSecond,
    requestUs: (ingested.request - before.request) / events,
    everythingUs: (drained.everything - before.everything) / events,
  }
}

async function ingestSingly({ port }: Service, { key }: Tenant, seconds: number) {
  const ids: string[] = []
  let nth = 0
  const { perSecond } = await runLoad({
    port,
    connections: CONNECTIONS,
    durationMs: seconds * 1_000,
    request: () => {
      nth += 1
      return requestBytes('POST', '/v1/events', { key, body: JSON.stringify(sampleEvent(nth)) })
    },
    onResponse: (status, body) => {
      if (status !== 201) throw new Error(`an event was refused: ${status} ${body}`)
      ids.push(...idsOf(body))
    },
  })
  return { ids, perSecond }
}
