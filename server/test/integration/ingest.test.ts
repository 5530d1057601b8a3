import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { assertChainsHold, walkEvents } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const NOW = '2026-03-01T12:00:00.000Z'
const { clock, advance } = manualClock(Date.parse(NOW))
const annals = await startTestApp({ clock })
after(() => annals[Symbol.asyncDispose]())

const send = (key: string, body: unknown, headers: Record<string, string> = {}) =>
  annals.call('POST', '/v1/events', { key, body, headers })

test('a stored event has everything that was sent', async () => {
  const tenant = await annals.createCompany()
  const event = {
    category: 'billing',
    action: 'invoice.paid',
    timestamp: '2026-02-28T23:30:00.125+02:00',
    projectId: tenant.project.id,
    actor: { id: 'u-1', email: 'ada@example.com', role: 'admin' },
    resource: { type: 'invoice', id: 'inv-9' },
    metadata: { amount: 12.5, tags: ['a', 'ü', '🎈'], nested: { no: null, yes: true } },
    idempotencyKey: 'only-once',
  }
  const response = await send(tenant.workspaceKey, event)
  assert.equal(response.status, 201, response.text)
  assert.deepEqual(Object.keys(response.json), ['id'])
  assert.equal(response.headers.get('x-idempotent-replay'), null)
  const [stored, ...others] = await walkEvents(annals, tenant.workspaceKey)
  assert.equal(others.length, 0)
  const { hash, ...rest } = stored
  assert.match(hash, /^[0-9a-f]{64}$/)
  assert.deepEqual(rest, {
    id: response.json.id,
    seq: 1,
    timestamp: '2026-02-28T21:30:00.125Z',
    receivedAt: NOW,
    companyId: tenant.company.id,
    workspaceId: tenant.workspace.id,
    projectId: event.projectId,
    category: event.category,
    action: event.action,
    actor: event.actor,
    resource: event.resource,
    metadata: event.metadata,
    traceId: response.headers.get('x-trace-id'),
    prevHash: '0'.repeat(64),
  })
})

test('missing fields are null, and the default time is that of receipt', async () => {
  const { workspaceKey } = await annals.createCompany()
  await send(workspaceKey, { category: 'c', action: 'a' })
  const [stored] = await walkEvents(annals, workspaceKey)
  const { timestamp, receivedAt, projectId, actor, resource, metadata } = stored
  assert.deepEqual([timestamp, receivedAt], [NOW, NOW])
  assert.deepEqual([projectId, actor, resource, metadata], [null, null, null, null])
})

test('an empty object stays empty, and every part can be partial', async () => {
  const { workspaceKey } = await annals.createCompany()
  const parts = { actor: {}, resource: { id: '' }, metadata: {} }
  await send(workspaceKey, { category: 'c', action: 'a', ...parts })
  const [{ actor, resource, metadata }] = await walkEvents(annals, workspaceKey)
  assert.deepEqual({ actor, resource, metadata }, parts)
})

test('parts are stored as canonical JSON, and returned as stored', async () => {
  const { workspaceKey, workspace } = await annals.createCompany()
  const text = `{"category":"c","action":"a","metadata":{"z":1.0,"a":{"y":1e2,"b":-0},
    "\\u00e9":"\\u0041\\/"},"actor":{"role":"r","id":"i"}}`
  const response = await annals.call('POST', '/v1/events', { key: workspaceKey, text })
  assert.equal(response.status, 201, response.text)
  const [row] = await query(
    annals.database.connection,
    `select actor, metadata from event where workspace_id = '${workspace.id}'`,
  )
  assert.deepEqual(row, {
    actor: '{"id":"i","role":"r"}',
    metadata: '{"a":{"b":0,"y":100},"z":1,"é":"A/"}',
  })
  const page = await annals.call('GET', '/v1/events', { key: workspaceKey })
  assert(page.text.includes(`"metadata":${row?.['metadata']}`))
})

test('a key __proto__ is data like any other', async () => {
  const { workspaceKey } = await annals.createCompany()
  for (const metadata of ['{"__proto__":1}', '{"a":{"__proto__":{"b":1}},"constructor":2}']) {
    const text = `{"category":"c","action":"a","metadata":${metadata}}`
    assert.equal((await annals.call('POST', '/v1/events', { key: workspaceKey, text })).status, 201)
    const page = await annals.call('GET', '/v1/events?limit=1', { key: workspaceKey })
    assert(page.text.includes(`"metadata":${metadata}`), page.text)
  }
})

const TIMESTAMPS = [
  ['2026-03-01T12:00:00Z', NOW],
  ['2026-03-01t12:00:00z', NOW],
  ['2026-03-01T12:00:00.123456789Z', '2026-03-01T12:00:00.123Z'],
  ['2026-03-01T12:00:00.9999Z', '2026-03-01T12:00:00.999Z'],
  ['2026-03-01T12:00:00.5-00:00', '2026-03-01T12:00:00.500Z'],
  ['2026-03-01T17:45:00+05:45', NOW],
  ['2026-03-02T12:00:00Z', '2026-03-02T12:00:00.000Z'],
  ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
  ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ['1582-10-10T00:00:00Z', '1582-10-10T00:00:00.000Z'],
  ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
] as const

test('a timestamp of any age and notation is kept to the millisecond, truncated and not rounded', async () => {
  const { workspaceKey } = await annals.createCompany()
  for (const [timestamp] of TIMESTAMPS) {
    const response = await send(workspaceKey, { category: 'c', action: timestamp, timestamp })
    assert.equal(response.status, 201, response.text)
  }
  const stored = await walkEvents(annals, workspaceKey)
  const shown = new Map(stored.map(({ action, timestamp }) => [action, timestamp]))
  assert.deepEqual(shown, new Map(TIMESTAMPS))
  await assertChainsHold(annals)
})

test('stores texts of the maximum length, counted in characters', async () => {
  const { workspaceKey } = await annals.createCompany()
  const event = {
    category: '🎈'.repeat(256),
    action: 'a'.repeat(256),
    actor: {
      id: 'ü'.repeat(512),
      email: `${'a'.repeat(64)}@${'b'.repeat(255)}`,
      role: '界'.repeat(512),
    },
    resource: { type: '🎈'.repeat(512), id: '界'.repeat(512) },
    idempotencyKey: '🎈'.repeat(255),
  }
  const response = await send(workspaceKey, event)
  assert.equal(response.status, 201, response.text)
  const { idempotencyKey: _key, ...sent } = event
  const [{ category, action, actor, resource }] = await walkEvents(annals, workspaceKey)
  assert.deepEqual({ category, action, actor, resource }, sent)
})

test('stores a body of exactly 256 KiB', async () => {
  const { workspaceKey } = await annals.createCompany()
  const frame = JSON.stringify({ category: 'c', action: 'a', metadata: { text: '' } }).length
  const text = 'x'.repeat(256 * 1_024 - frame)
  const response = await send(workspaceKey, { category: 'c', action: 'a', metadata: { text } })
  assert.equal(response.status, 201, response.text)
  const [{ metadata }] = await walkEvents(annals, workspaceKey)
  assert.equal(metadata.text, text)
})

test('stores the caller’s trace id, or a new one if none is sent', async () => {
  const { workspaceKey } = await annals.createCompany()
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`
  const first = await send(workspaceKey, { category: 'c', action: 'a' }, { traceparent })
  assert.equal(first.headers.get('x-trace-id'), traceId)
  const second = await send(workspaceKey, { category: 'c', action: 'a' })
  const fresh = second.headers.get('x-trace-id')
  assert.match(fresh ?? '', /^[0-9a-f]{32}$/)
  const stored = await walkEvents(annals, workspaceKey)
  const shown = new Map(stored.map((event) => [event.id, event.traceId]))
  assert.equal(shown.get(first.json.id), traceId)
  assert.equal(shown.get(second.json.id), fresh)
})

test('each workspace has its own chain, with sequence numbers from 1 without gaps', async () => {
  const { workspaces } = await annals.createCompany({ workspaces: ['One', 'Two'] })
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const body = { category: 'c', action: 'a', idempotencyKey: `${round}-${index}` }
        // On a busy machine the response can be 503; then the client retries.
        await eventually(async () => {
          const { status, text } = await send(workspaces[index % 2]?.workspaceKey ?? '', body)
          assert(status === 200 || status === 201, text)
        })
      }),
    )
    // Back and forth, because the chain order is not the clock's order.
    advance(round % 3 === 0 ? -50 : 40)
  }
  for (const { workspaceKey } of workspaces) {
    const chain = (await walkEvents(annals, workspaceKey)).toSorted((a, b) => a.seq - b.seq)
    assert.deepEqual(
      chain.map(({ seq }) => seq),
      Array.from({ length: 100 }, (_, index) => index + 1),
    )
    for (const [index, event] of chain.entries()) {
      assert.equal(event.prevHash, chain[index - 1]?.hash ?? '0'.repeat(64))
      if (index > 0) assert(event.id > chain[index - 1].id, 'ids ascend along the chain')
    }
  }
  await assertChainsHold(annals)
})

test('two nodes that write to the same workspaces leave no gap and fail no caller', async () => {
  await using other = await startTestApp({ clock, databaseUrl: annals.database.url })
  const { workspaces } = await annals.createCompany({ workspaces: ['One', 'Two', 'Three'] })
  const nodes = [annals, other]
  const callers = Array.from({ length: 24 }, async (_, caller) => {
    const ids: string[] = []
    for (let index = 0; index < 15; index += 1) {
      const key = workspaces[(caller + index) % 3]?.workspaceKey ?? ''
      const response = await nodes[caller % 2]?.call('POST', '/v1/events', {
        key,
        body: { category: 'c', action: `${caller}/${index}` },
      })
      assert.equal(response?.status, 201, response?.text)
      ids.push(response?.json.id)
    }
    return ids
  })
  const acknowledged = (await Promise.all(callers)).flat()
  const stored: string[] = []
  for (const { workspaceKey } of workspaces) {
    const events = await walkEvents(annals, workspaceKey)
    assert.deepEqual(
      events.map(({ seq }) => seq).toSorted((a, b) => a - b),
      events.map((_, index) => index + 1),
    )
    stored.push(...events.map(({ id }) => id))
  }
  assert.deepEqual(stored.toSorted(), acknowledged.toSorted())
  await assertChainsHold(annals)
})

test('a new workspace accepts events on every node immediately', async () => {
  await using other = await startTestApp({ clock, databaseUrl: annals.database.url })
  const { workspaceKey: key } = await annals.createCompany()
  const body = { category: 'c', action: 'a' }
  const responses = await Promise.all(
    [annals, other, annals, other].map((node) => node.call('POST', '/v1/events', { key, body })),
  )
  assert.deepEqual(
    responses.map(({ status }) => status),
    [201, 201, 201, 201],
  )
  assert.equal((await walkEvents(annals, key)).length, 4)
  await assertChainsHold(annals)
})

test('the serving role cannot change or remove an event or its key', async () => {
  const { db } = annals.app.database
  const denied = /permission denied for table/
  const [partition] = await query(
    annals.database.connection,
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'event'::regclass limit 1`,
  )
  for (const table of ['event', 'event_default', 'idempotency_key', String(partition?.['name'])]) {
    const name = sql.raw(table)
    await assert.rejects(sql`update ${name} set workspace_id = workspace_id`.execute(db), denied)
    await assert.rejects(sql`delete from ${name}`.execute(db), denied)
    await assert.rejects(sql`truncate ${name}`.execute(db), denied)
  }
})
