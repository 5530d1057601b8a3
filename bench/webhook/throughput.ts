import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { machineMs } from '../lib/machine-clock.ts'
import { cpuUsOf, postgresCpuUs } from '../lib/processes.ts'
import { ROOT } from '../lib/service.ts'
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

const EVENTS = 4_000 * SECONDS
const WARM_UP_EVENTS = EVENTS / 4
const CONCURRENCY = 64

type Throughput = { perSecond: number; fromStartPerSecond: number; cpuUs: number }

/** Deliveries per second while batches are ingested at full speed, compared with a bare undici loop. */
export async function measureThroughput(setup: Setup): Promise<Part> {
  const [warmUp, measured] = createTenants(setup, 2)
  const ours = await measureEndToEnd(setup, warmUp, measured)
  const bare = await measureBareLoop(setup)
  return {
    rows: [
      { name: 'bare undici loop', events: '', fromStartPerSecond: '', ...bare },
      { name: 'annals, end to end', events: EVENTS, ...ours },
    ],
    figures: {
      'deliveries/s (≥ 2,000)': ours.perSecond,
      'deliveries/s from the start of the ingest': ours.fromStartPerSecond,
      'deliveries/s to bare undici (≥ 0.2)': ours.perSecond / bare.perSecond,
    },
  }
}

async function measureEndToEnd(
  setup: Setup,
  warmUp: Tenant | undefined,
  measured: Tenant | undefined,
): Promise<Throughput> {
  await using service = await startNode(setup, 'all')
  const run = async (name: string, tenant: Tenant | undefined, count: number) => {
    if (!tenant) throw new Error('there is a workspace for each run')
    await createWebhook(service, tenant, setup.receiver.urlOf(name))
    const readCpuUs = () => cpuUsOf(service.pid) + postgresCpuUs(setup.postmaster)
    const cpuUsBefore = readCpuUs()
    const startedAtMs = machineMs()
    await ingestBatches(setup, service, { tenant, count, name })
    const { firstAtMs, lastAtMs } = await setup.receiver.awaitEvents(name, count)
    return {
      perSecond: (count / (lastAtMs - firstAtMs)) * 1_000,
      fromStartPerSecond: (count / (lastAtMs - startedAtMs)) * 1_000,
      cpuUs: (readCpuUs() - cpuUsBefore) / count,
    }
  }
  await run('throughput-warm-up', warmUp, WARM_UP_EVENTS)
  return await run('throughput', measured, EVENTS)
}

async function measureBareLoop({
  receiver,
}: Setup): Promise<Pick<Throughput, 'perSecond' | 'cpuUs'>> {
  const { headers, body } = await receiver.sample('throughput')
  const { stdout } = await promisify(execFile)(
    join(ROOT, 'bin/node'),
    [join(ROOT, 'bench/reference/undici-loop.ts')],
    {
      env: {
        ...process.env,
        TARGET: receiver.urlOf('bare'),
        HEADERS: JSON.stringify(headers),
        BODY: body,
        SECONDS: String(SECONDS),
        CONCURRENCY: String(CONCURRENCY),
      },
    },
  )
  const result: { perSecond: number; cpuUs: number } = JSON.parse(stdout)
  return result
}
