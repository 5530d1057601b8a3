import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { EngineFolder, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { waitForStandby } from '../harness/database/standby.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { urlOf } from '../harness/database/template-db.ts'

test('a replay gets no response before the standby has the event', async () => {
  await using folder = EngineFolder.prepared()
  // A separate engine, because the setting affects the whole cluster and would stop all other
  // tests.
  await using engine = await startEngine({
    dataDir: folder.dataDir,
    exclusive: false,
    settings: SMALL_ENGINE,
  })
  await using annals = await startTestApp({ databaseUrl: urlOf(engine.connection) })
  const { workspaceKey: key } = await annals.createCompany()
  const body = { category: 'c', action: 'a', idempotencyKey: 'k' }
  const send = () => annals.call('POST', '/v1/events', { key, body })
  const first = await send()
  assert.equal(first.status, 201)
  assert.equal((await send()).status, 200, 'no standby, no wait')

  await waitForStandby(engine.connection, 'ghost')
  const waiting = await send()
  assert.deepEqual([waiting.status, waiting.json.code], [503, 'unavailable'])

  await waitForStandby(engine.connection, '')
  const last = await eventually(async () => {
    const response = await send()
    assert.notEqual(response.status, 503)
    return response
  })
  assert.deepEqual([last.status, last.json], [200, first.json])
  const events = await annals.call('GET', '/v1/events', { key })
  assert.equal(events.json.data.length, 1)
})
