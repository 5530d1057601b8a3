import assert from 'node:assert/strict'
import { listSegments } from '../../../src/ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'
import type { CreatedCompany } from '../../../src/tenancy/create-company.ts'
import { manualClock } from '../timing/clock.ts'
import { query } from '../database/engine.ts'
import { eventually } from '../timing/eventually.ts'
import { listenAsMetadata, S3Server, setS3Environment } from './s3-server.ts'
import { startTestApp, type TestApp } from '../app/start-app.ts'

/** Starts an S3 server with a bucket that the services in this process can use. */
export async function openBucket(stack: AsyncDisposableStack): Promise<S3Server> {
  const metadata = await listenAsMetadata()
  stack.defer(() => void metadata.server.close())
  setS3Environment(metadata)
  return stack.use(await S3Server.listen())
}

/** Starts a service with an archive in a bucket, no rate limits, and a clock that only the test advances. */
export async function startWithBucket() {
  await using stack = new AsyncDisposableStack()
  const s3 = await openBucket(stack)
  const { clock, advance } = manualClock()
  const annals = stack.use(
    await startTestApp({
      clock,
      monotonic: () => performance.now(),
      // The signer reads the archive too. With this, it does so only when the service starts.
      env: { ...s3.env, ANNALS_RATE_LIMITS: 'off', ANNALS_CHECKPOINT_SECONDS: '3600' },
    }),
  )
  const kept = stack.move()
  return { annals, s3, clock, advance, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** The paths of a workspace's archived files, as `S3Server` names them. */
export async function listPaths({ app }: TestApp, workspaceId: WorkspaceId): Promise<string[]> {
  const run = { workspaceId, fromSeq: 1, toSeq: Number.MAX_SAFE_INTEGER, limit: 100 }
  const segments = await listSegments(app.database.db, run)
  return segments.map(({ objectKey }) => `annals/${objectKey}`)
}

/** Returns when the node, which caches keys, uses the new plan. */
export async function setPlan(
  annals: TestApp,
  { company, workspaceKey }: CreatedCompany,
  plan: string,
): Promise<void> {
  const { connection } = annals.database
  await query(connection, `update company set plan = '${plan}' where id = '${company.id}'`)
  await eventually(async () => {
    const { json } = await annals.call('GET', '/v1/keys/status', { key: workspaceKey })
    assert.equal(json.plan, plan)
  })
}
