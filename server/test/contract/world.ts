import assert from 'node:assert/strict'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { listPaths, openBucket } from '../harness/archive/bucket.ts'
import { copyJob, makeExport, storeEvents } from '../harness/export/exports.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import {
  type TestResponse,
  call,
  type CallOptions,
  startTestApp,
  type TestApp,
} from '../harness/app/start-app.ts'

/** The part of the output of `annals bootstrap --json` that the cases use. */
const Tenant = Type.Object({
  workspace: Type.Object({ id: Type.String() }),
  project: Type.Object({ id: Type.String() }),
  companyKey: Type.String(),
  workspaceKey: Type.String(),
})
export type Tenant = Static<typeof Tenant>

const Tenants = Type.Object({
  /** On ENTERPRISE, so that no rate limit affects its cases. */
  owner: Tenant,
  /** Also on ENTERPRISE. It never sees data of the owner. */
  stranger: Tenant,
  /** On FREE, to reach the rate limit. */
  free: Tenant,
  /** Its allowlist applies to all calls and doesn't include our address. */
  fenced: Type.Optional(Tenant),
  /** Has the maximum number of open exports. */
  crowded: Type.Optional(Tenant),
  /** On FREE. Its only event is archived. */
  archived: Type.Optional(Tenant),
  /** On ENTERPRISE. Its only event is in a file that has to be restored. */
  frozen: Type.Optional(Tenant),
})

export type Call = (method: string, path: string, options?: CallOptions) => Promise<TestResponse>

/** Everything that a case can use: only URLs and keys, so that it can run against any deployment. */
export type World = AsyncDisposable & {
  tenants: Static<typeof Tenants>
  call: Call
  /** Calls a node whose database is unreachable. Null if the deployment has none. */
  callBroken: Call | null
  /** The URL of the webhooks, where nothing listens. */
  receiverUrl: string
}

/** A reserved name that doesn't exist, for deployments that may resolve names. */
const UNREACHABLE_URL = 'https://receiver.example/hook'
/** A receiver that is unreachable on this machine, for a service of our own. */
const CLOSED_PORT_URL = 'http://127.0.0.1:9/hook'

/**
 * Our own service, or the deployment at BASE_URL. In that case TENANTS contains the bootstrap JSON
 * of each tenant by name, BROKEN_URL can name a node whose database is unreachable, and
 * RECEIVER_URL a receiver for webhooks.
 */
export async function openWorld(env: NodeJS.ProcessEnv): Promise<World> {
  const { BASE_URL, TENANTS, BROKEN_URL, RECEIVER_URL = UNREACHABLE_URL } = env
  if (BASE_URL === undefined) return await startWorld()
  assert(TENANTS, 'With BASE_URL, TENANTS must be {"owner":…,"stranger":…,"free":…}')
  return {
    tenants: Compile(Tenants).Parse(JSON.parse(TENANTS)),
    call: callAt(BASE_URL),
    callBroken: BROKEN_URL === undefined ? null : callAt(BROKEN_URL),
    receiverUrl: RECEIVER_URL,
    [Symbol.asyncDispose]: async () => {},
  }
}

function callAt(baseUrl: string): Call {
  return (method, path, options) => call(`${baseUrl}${path}`, method, options)
}

async function startWorld(): Promise<World> {
  await using stack = new AsyncDisposableStack()
  const s3 = await openBucket(stack)
  const annals = stack.use(
    await startTestApp({
      env: { ...s3.env, ANNALS_WEBHOOK_DESTINATIONS: 'any', ANNALS_CHECKPOINT_SECONDS: '1' },
      clock: Date.now,
      // Slower than time, so that a slow machine sends requests faster than a rate limit refills.
      monotonic: () => performance.now() / 10,
    }),
  )
  const { user, password, database } = annals.database.connection
  const proxy = stack.use(await PgProxy.listen(annals.database.connection))
  const databaseUrl = `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${proxy.port}/${database}`
  // An API node, so that it never signs instead of the other one, whose archive it doesn't have.
  const broken = stack.use(await startTestApp({ databaseUrl, role: 'api' }))
  proxy.mode = 'refuse'
  const fenced = await annals.createCompany({ allowlist: ['192.0.2.0/24'] })
  await annals.app.database.db
    .updateTable('company')
    .set({ allowlist_for_all_calls: true })
    .where('id', '=', fenced.company.id)
    .execute()
  const crowded = await annals.createCompany()
  await fillWithExports(annals, crowded)
  const archived = await annals.createCompany({ plan: 'FREE' })
  const frozen = await annals.createCompany()
  await archiveOneEach(annals, [archived, frozen])
  for (const path of await listPaths(annals, frozen.workspace.id)) s3.freeze(path, 'GLACIER')
  const tenants = {
    owner: await annals.createCompany(),
    stranger: await annals.createCompany(),
    free: await annals.createCompany({ plan: 'FREE' }),
    fenced,
    crowded,
    archived,
    frozen,
  }
  const kept = stack.move()
  return {
    tenants,
    call: callAt(annals.url),
    callBroken: callAt(broken.url),
    receiverUrl: CLOSED_PORT_URL,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

async function archiveOneEach(annals: TestApp, tenants: readonly Tenant[]): Promise<void> {
  for (const { workspaceKey } of tenants) {
    await storeEvents(annals, workspaceKey, [{ category: 'contract', action: 'archived' }])
  }
  assert.equal((await archiveAll(annals)).failed, 0)
}

async function fillWithExports(annals: TestApp, { companyKey }: Tenant): Promise<void> {
  const jobId = await makeExport(annals, companyKey)
  await copyJob(annals, jobId, { count: COMPANY_BOUNDS.openExportsMax - 1 })
}
