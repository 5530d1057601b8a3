import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { EngineFolder, query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { urlOf } from '../harness/database/template-db.ts'

test('a node connected to a standby serves queries, and accepts events once it is promoted', async () => {
  await using folder = EngineFolder.prepared()
  const start = () =>
    startEngine({ dataDir: folder.dataDir, exclusive: false, settings: SMALL_ENGINE })
  await using primary = await start()
  await using annals = await startTestApp({ databaseUrl: urlOf(primary.connection) })
  const { workspaceKey: key } = await annals.createCompany()
  const send = () =>
    annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  const statusOf = async (path: string) => (await annals.call('GET', path, { key })).status
  assert.equal((await send()).status, 201)

  await primary[Symbol.asyncDispose]()
  // Restart the same server as a standby that has replayed everything.
  writeFileSync(folder.path('engine/cluster/standby.signal'), '')
  await using standby = await start()
  await eventually(async () => assert.equal(await statusOf('/v1/events'), 200))
  // The probe detects the standby without any event.
  await eventually(async () => assert.equal(await statusOf('/ready'), 503))
  assert.equal((await send()).status, 503)
  assert.equal(await statusOf('/ready'), 503)

  await query(standby.connection, 'select pg_promote()')
  await eventually(async () => assert.equal(await statusOf('/ready'), 200))
  assert.equal((await send()).status, 201)
  const events = await annals.call('GET', '/v1/events', { key })
  assert.equal(events.json.data.length, 2)
})
