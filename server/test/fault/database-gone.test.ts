import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { within } from '../harness/timing/eventually.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { assertLedgerHolds } from '../harness/event/ledger-oracle.ts'
import { assertPromptResponses, Load } from '../harness/event/load.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const proxy = stack.use(await PgProxy.listen(database.connection))
const databaseUrl = proxy.urlTo(database.connection)
const annals = stack.use(await startTestApp({ databaseUrl, timeoutFactor: 1 }))

/** The response, which must arrive within a second. */
async function promptly(method: string, path: string, options: { key?: string; body?: unknown }) {
  return await within(1_000, annals.call(method, path, options))
}

async function assertGone(key: string) {
  const responses = await Promise.all([
    promptly('POST', '/v1/events', { key, body: { category: 'a', action: 'b' } }),
    promptly('POST', '/v1/events/batch', {
      key,
      body: { events: [{ category: 'a', action: 'b' }] },
    }),
    promptly('GET', '/v1/events', { key }),
    promptly('GET', '/ready', {}),
  ])
  for (const { status, json, headers } of responses) {
    assert.deepEqual([status, json.code], [503, 'unavailable'])
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  }
  const health = await promptly('GET', '/health', {})
  assert.deepEqual([health.status, health.json], [200, { ok: false }])
}

for (const mode of ['refuse', 'stall'] as const) {
  test(`while the database is gone (${mode}), calls get 503 within a second, and service resumes on its own`, async () => {
    // The load doesn't use our workspace: events that get a 503 may still be stored, and the load
    // wouldn't count them.
    const { workspaces, workspaceKey: key } = await annals.createCompany({
      workspaces: ['Ours', 'A', 'B', 'C', 'D'],
    })
    const targets = workspaces.slice(1)
    await using load = new Load({ url: () => annals.url, targets })
    await repeatFault(async () => {
      await load.waitForProgress()
      const before = load.failed
      proxy.mode = mode
      // Immediately, while the key is cached, and again after many failures, when it no longer is.
      await assertGone(key)
      await load.waitForFailures(before + 500)
      await assertGone(key)
      proxy.mode = 'pass'
      await load.waitForProgress()
    })
    assert.deepEqual((await promptly('GET', '/health', {})).json, { ok: true })
    assert.equal((await promptly('GET', '/v1/events', { key })).status, 200)
    await load.stop()
    assertPromptResponses(load)
    await assertLedgerHolds(database.connection, [load])
  })
}
