import assert from 'node:assert/strict'
import { asOwner, type EngineConnection, multiNodeEnv } from '../lib/engine.ts'
import { requestBytes, runLoad } from '../lib/http-load.ts'
import { sampleEvent } from '../lib/sample-event.ts'
import { annals, type Service, startAnnals } from '../lib/service.ts'
import type { Receiver } from './receiver.ts'

export const SECONDS = Number(process.env.BENCH_SECONDS ?? 10)
export const WARM_UP_SECONDS = Math.min(4, SECONDS)
/** The database user of the worker, which identifies its share of PostgreSQL's CPU time. */
export const WORKER_USER = 'bench_worker'

const BATCH_EVENTS = 200
const BATCH_CONNECTIONS = 8
const INGEST_MS_MAX = 15 * 60_000

export type Tenant = { key: string; workspaceId: string; companyKey: string }

/** The rows of a table, and figures whose names include their targets. */
export type Part = {
  rows: Record<string, string | number>[]
  figures: Record<string, number>
}

/** What all parts share: an engine, a receiver, and the events that must arrive. */
export type Setup = {
  connection: EngineConnection
  postmaster: number
  env: Record<string, string>
  receiver: Receiver
  /** Every acknowledged event. */
  acknowledged: string[]
  /** The events that each healthy webhook must receive, by its name. */
  owed: Map<string, string[]>
}

export function createTenants({ env }: Setup, count: number): Tenant[] {
  const names = Array.from({ length: count }, (_, n) => ['--workspace', `Workspace ${n}`]).flat()
  const created: { companyKey: string; workspaces: { id: string; workspaceKey: string }[] } =
    JSON.parse(annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE', ...names))
  return created.workspaces.map(({ id, workspaceKey }) => ({
    key: workspaceKey,
    workspaceId: id,
    companyKey: created.companyKey,
  }))
}

export function startNode({ env }: Setup, role: 'all' | 'api'): Promise<Service> {
  return startAnnals(env, role)
}

export async function startWorker({ env, connection }: Setup): Promise<Service> {
  await asOwner(connection, async (client) => {
    const password = client.escapeLiteral(connection.password)
    await client.query(`create role ${WORKER_USER} superuser login password ${password}`)
  })
  return await startAnnals(
    { ...env, ...multiNodeEnv({ ...connection, user: WORKER_USER }) },
    'worker',
  )
}

export async function createWebhook(
  { port }: Service,
  { workspaceId, companyKey }: Tenant,
  url: string,
): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/workspaces/${workspaceId}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${companyKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  })
  const text = await response.text()
  assert.equal(response.status, 201, text)
  const { id }: { id: string } = JSON.parse(text)
  return id
}

/** Ingests as fast as batches allow. Returns the ids, which the webhook `name` must receive, if given. */
export async function ingestBatches(
  setup: Setup,
  { port }: Service,
  { tenant, count, name }: { tenant: Tenant; count: number; name?: string },
): Promise<string[]> {
  const ids: string[] = []
  let sent = 0
  const { byStatus } = await runLoad({
    port,
    connections: BATCH_CONNECTIONS,
    durationMs: INGEST_MS_MAX,
    request: () => {
      const events = Array.from({ length: BATCH_EVENTS }, (_, n) => sampleEvent(sent + n))
      sent += BATCH_EVENTS
      const body = JSON.stringify({ events })
      return requestBytes('POST', '/v1/events/batch', { key: tenant.key, body })
    },
    isDone: () => sent >= count,
    onResponse: (_status, body) => ids.push(...idsOf(body)),
  })
  assert.deepEqual(Object.keys(byStatus), ['200'])
  acknowledge(setup, ids, name)
  return ids
}

export function idsOf(body: string): string[] {
  return [...body.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id ?? '')
}

/** Records that these events are stored, and that the webhook must receive them. */
export function acknowledge(setup: Setup, ids: readonly string[], name?: string): void {
  for (const id of ids) setup.acknowledged.push(id)
  if (name === undefined) return
  const owed = setup.owed.get(name) ?? []
  for (const id of ids) owed.push(id)
  setup.owed.set(name, owed)
}
