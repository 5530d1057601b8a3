import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { sql } from 'kysely'
import { foldCase } from '../../src/platform/fold-case.ts'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  explore,
  readHistogram,
  readOptions,
  removeUpTo,
  sendEvents,
  walkExplorer,
} from '../harness/dashboard/explorer.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { idsOf, listPage } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

const countAll = (workspaceId: WorkspaceId) => advanceRollup(db, workspaceId, { runMax: 10_000 })

test('pages list events newest first, with everything needed to verify them', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const at = (nth: number) => new Date(Date.now() - nth * MINUTE_MS).toISOString()
  const events = Array.from({ length: 25 }, (_, nth) => ({
    category: 'c',
    action: `a${nth}`,
    timestamp: at((nth * 7) % 25),
    metadata: { nth },
  }))
  await sendEvents(annals, tenant.workspaceKey, events)
  const { status, json, headers } = await explore(member, { limit: '10' })
  assert.equal(status, 200)
  assert.equal(headers.get('x-hot-since'), json.hotSince)
  assert.equal(json.data.length, 10)
  assert.deepEqual(Object.keys(json.data[0].sealed), Object.keys(json.data[0].salts))
  const walked = await walkExplorer(member)
  assert.deepEqual(
    idsOf(walked),
    idsOf((await listPage(annals, tenant.workspaceKey, { limit: '200' })).json.data),
  )
})

test('a member sees only their workspaces, and others get the same 404 as unknown ones', async () => {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const foreign = await annals.createCompany()
  const [first, second] = tenant.workspaces
  assert(first && second)
  await sendEvents(annals, first.workspaceKey, [{ category: 'one', action: 'a' }])
  const [hidden] = await sendEvents(annals, second.workspaceKey, [{ category: 'two', action: 'a' }])
  const [strange] = await sendEvents(annals, foreign.workspaceKey, [{ category: 'x', action: 'a' }])
  const system = await getSystemWorkspace(db, tenant.company.id)
  for (const role of ['ANALYST', 'VIEWER'] as const) {
    const member = await signInAs(annals, tenant, role, [first.id])
    assert.deepEqual(
      (await walkExplorer(member)).map(({ category }) => category),
      ['one'],
    )
    const { json } = await readOptions(member, { field: 'category' })
    assert.deepEqual(json.values, [{ value: 'one', count: 1 }])
    assert.equal((await readHistogram(member)).json.total, 1)
    const unknown = await explore(member, { workspaceId: newId() })
    assert.equal(unknown.status, 404)
    const others: WorkspaceId[] = [second.id, foreign.workspace.id, system]
    for (const workspaceId of others) {
      for (const ask of [explore, readHistogram]) {
        const { status, json: body } = await ask(member, { workspaceId })
        assert.equal(status, 404)
        assert.deepEqual({ ...body, traceId: '' }, { ...unknown.json, traceId: '' })
      }
      assert.equal((await readOptions(member, { field: 'action', workspaceId })).status, 404)
    }
    for (const id of [hidden, strange, newId(), 'no-id', '%00']) {
      const { status, json: body } = await member.call('GET', `/dashboard/events/${id}`)
      assert.equal(status, 404, String(id))
      assert.equal(body.error, 'No such resource.')
    }
  }
  const owner = await signInAs(annals, tenant, 'OWNER')
  const seen = (await walkExplorer(owner)).map(({ category }) => String(category))
  assert.deepEqual(seen.toSorted(), ['one', 'two'])
  assert.equal((await explore(owner, { workspaceId: system })).status, 200)
})

test('an event is shown with its position in the chain', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const ids = await sendEvents(
    annals,
    tenant.workspaceKey,
    Array.from({ length: 9 }, (_, nth) => ({ category: 'c', action: `a${nth}` })),
  )
  for (const [index, id] of ids.entries()) {
    const { status, json } = await member.call('GET', `/dashboard/events/${id}`)
    assert.equal(status, 200)
    assert.equal(json.event.id, id)
    assert.equal(json.event.seq, index + 1)
    assert.equal(json.previous?.id ?? null, ids[index - 1] ?? null)
    assert.equal(json.next?.id ?? null, ids[index + 1] ?? null)
    if (json.previous) assert.equal(json.previous.hash, json.event.prevHash)
    if (json.next) assert.equal(json.next.prevHash, json.event.hash)
  }
})

const TEXTS = ['b', 'BILL', 'bill', '%', '_', '\\', 'Ä', 'ä', 'é', 'lo', '😀', "'", 'zzz']
const VALUES = ['billing', 'Bill%', 'a_b', 'ÄUTH', 'äuth', 'LOgin', 'x\\y', '😀 o', "o'neil", 'éa']

const anyEvent = fc.record(
  {
    category: fc.constantFrom(...VALUES),
    action: fc.constantFrom(...VALUES),
    actor: fc.record(
      { id: fc.constantFrom(...VALUES, ''), email: fc.constantFrom('Bill@x.y', 'ä@lo.z') },
      { requiredKeys: [] },
    ),
    resource: fc.record(
      { type: fc.constantFrom(...VALUES), id: fc.constantFrom(...VALUES) },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['category', 'action'] },
)
type AnyEvent = typeof anyEvent extends fc.Arbitrary<infer Event> ? Event : never

/** An independent implementation of the free-text search. */
function holds({ category, action, actor, resource }: AnyEvent, text: string): boolean {
  const values = [category, action, actor?.id, actor?.email, resource?.type, resource?.id]
  const lower = (value: string) => value.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  return values.some((value) => value !== undefined && lower(value).includes(lower(text)))
}

test('text search finds values that are counted, new, or too many to be listed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyEvent, { minLength: 6, maxLength: 40 }), async (events) => {
      const tenant = await annals.createCompany()
      const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
      const ids = await sendEvents(annals, tenant.workspaceKey, events)
      const expected = (text: string) =>
        ids.filter((_, index) => holds(events[index] ?? { category: '', action: '' }, text))
      const assertFound = async () => {
        for (const text of TEXTS) {
          const found = idsOf(await walkExplorer(member, { text }))
          assert.deepEqual(found.toSorted(), expected(text).toSorted(), text)
          const { json } = await readHistogram(member, { text, by: 'action' })
          assert.equal(json.total, found.length, text)
        }
      }
      await assertFound()
      await advanceRollup(db, tenant.workspace.id, { runMax: 5 })
      await assertFound()
      await countAll(tenant.workspace.id)
      await assertFound()
      await sendEvents(annals, tenant.workspaceKey, [{ category: '-', action: '-' }])
      await countAll(tenant.workspace.id)
      await assertFound()
      await sql`update event_field set dropped_seq = 3 where workspace_id = ${tenant.workspace.id}`.execute(
        db,
      )
      await sql`delete from event_value where workspace_id = ${tenant.workspace.id} and field = 'action'`.execute(
        db,
      )
      await assertFound()
    }),
    { numRuns: rounds(2, 6) },
  )
})

test('the database and the program fold case in the same way', async () => {
  const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 50 })
  await fc.assert(
    fc.asyncProperty(texts, async (all) => {
      const texts = [...all, 'ÀÉÎ AZ az ß İ K ſ Σς'].filter((text) => !text.includes('\0'))
      const { rows } = await sql<{ folded: string[] }>`
        select array_agg(lower(t collate "C") order by n) as folded
          from unnest(${texts}::text[]) with ordinality as v (t, n)`.execute(db)
      assert.deepEqual(rows[0]?.folded, texts.map(foldCase))
    }),
  )
})

test('a field with too many values says so, and is complete again when they are gone', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const send = (from: number) =>
    sendEvents(
      annals,
      tenant.workspaceKey,
      Array.from({ length: 5 }, (_, nth) => ({
        category: 'c',
        action: 'a',
        actor: { id: `actor ${from + nth}` },
      })),
    )
  await send(0)
  await countAll(tenant.workspace.id)
  await sql`update event_field set value_count = 100000
             where workspace_id = ${tenant.workspace.id} and field = 'actorId'`.execute(db)
  await send(3)
  await countAll(tenant.workspace.id)
  const { json } = await readOptions(member, { field: 'actorId' })
  assert.equal(json.isComplete, false)
  const range = { from: '2020-01-01T00:00:00Z', to: '2030-01-01T00:00:00Z' }
  const ranged = await readOptions(member, { field: 'actorId', ...range })
  assert.equal(ranged.json.isComplete, false, 'a range is for category and action')
  assert.deepEqual(
    json.values.map(({ value, count }: { value: string; count: number }) => `${value}: ${count}`),
    ['actor 3: 2', 'actor 4: 2', 'actor 0: 1', 'actor 1: 1', 'actor 2: 1'],
  )
  assert.equal((await walkExplorer(member, { text: 'ACTOR 7' })).length, 1)
  assert.equal((await readOptions(member, { field: 'category' })).json.isComplete, true)
  await sql`update event_field set value_count = 5
             where workspace_id = ${tenant.workspace.id} and field = 'actorId'`.execute(db)
  await removeUpTo(annals, tenant.workspace.id, 10)
  await send(6)
  await countAll(tenant.workspace.id)
  const whole = await readOptions(member, { field: 'actorId' })
  assert.equal(whole.json.isComplete, true)
  assert.equal(whole.json.values.length, 5)
})

test('a cursor is valid only for its member, workspaces and filters', async () => {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const events = Array.from({ length: 30 }, () => ({ category: 'c', action: 'a' }))
  await sendEvents(annals, tenant.workspaceKey, events)
  const member = await signInAs(annals, tenant, 'OWNER')
  const other = await signInAs(annals, tenant, 'OWNER')
  const { json } = await explore(member, { limit: '10', text: 'c' })
  const cursor: string = json.nextCursor
  assert.equal((await explore(member, { limit: '20', text: 'c', cursor })).status, 200)
  const wrong: [Member, Record<string, string>][] = [
    [other, { text: 'c', cursor }],
    [member, { text: 'C', cursor }],
    [member, { cursor }],
    [member, { text: 'c', cursor, workspaceId: tenant.workspace.id }],
    [member, { text: 'c', cursor: `${cursor}A` }],
    [member, { text: 'c', cursor: 'x' }],
  ]
  for (const [caller, parameters] of wrong) {
    const response = await explore(caller, parameters)
    assert.equal(response.status, 400, JSON.stringify(parameters))
    assert.equal(response.json.code, 'invalid_cursor')
  }
  const asKey = await listPage(annals, tenant.companyKey, { limit: '10' })
  const taken = await explore(member, { cursor: asKey.json.nextCursor })
  assert.equal(taken.json.code, 'invalid_cursor')
})

test('finds a trace within a day, and rejects a longer range with the reason', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const traceId = 'ab'.repeat(16)
  const traced = await annals.call('POST', '/v1/events', {
    key: tenant.workspaceKey,
    body: { category: 'c', action: 'a' },
    headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
  })
  await sendEvents(annals, tenant.workspaceKey, [{ category: 'c', action: 'a' }])
  const now = Date.now()
  const range = (days: number) => ({
    from: new Date(now + MINUTE_MS - days * DAY_MS).toISOString(),
    to: new Date(now + MINUTE_MS).toISOString(),
  })
  for (const spelling of [traceId, traceId.toUpperCase()]) {
    for (const times of [{}, range(1), range(90), { to: range(1).to }]) {
      const found = await walkExplorer(member, { traceId: spelling, ...times })
      assert.deepEqual(idsOf(found), [traced.json.id])
    }
    assert.equal((await readHistogram(member, { traceId: spelling, ...range(90) })).json.total, 1)
  }
})

test('rejects invalid filters, numbers and times with a 400, never a 5xx', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  await sendEvents(annals, tenant.workspaceKey, [{ category: 'c', action: 'a' }])
  const bad: Record<string, string>[] = [
    { limit: '9' },
    { limit: '201' },
    { limit: 'x' },
    { text: '' },
    { text: 'x'.repeat(201) },
    { text: 'a\0b' },
    { from: 'yesterday' },
    { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' },
    { traceId: 'zz' },
    { projectId: 'x' },
    { workspaceId: 'x' },
    { unknown: '1' },
  ]
  for (const parameters of bad) {
    const { status, json } = await explore(member, parameters)
    assert.equal(status, 400, JSON.stringify(parameters))
    assert.equal(json.code, 'invalid_request')
  }
  for (const parameters of [
    { by: 'actor' },
    { limit: '10' },
    { to: '0000-01-01T00:00:01Z' },
    { timeZone: 'Europe/Atlantis' },
    { timeZone: '+05:30' },
    { timeZone: 'A'.repeat(65) },
  ]) {
    assert.equal((await readHistogram(member, parameters)).status, 400, JSON.stringify(parameters))
  }
  for (const parameters of [
    { field: 'metadata' },
    { field: '' },
    { field: 'action', limit: '51' },
    { field: 'action', from: '2026-01-01T00:00:00Z' },
    { field: 'action', category: 'billing' },
    { field: 'actorId', from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', category: 'a' },
  ]) {
    assert.equal((await readOptions(member, parameters)).status, 400, JSON.stringify(parameters))
  }
  const ages = { from: '0000-01-01T00:00:00Z', to: '9999-12-31T23:59:59.999Z' }
  const { status, json, text } = await readHistogram(member, ages)
  assert.equal(status, 200, text)
  assert.equal(json.total, 1)
  assert(json.bars.length <= 122)
  const there = await readHistogram(member, { ...ages, timeZone: 'Asia/Kathmandu' })
  assert.equal(there.json.total, 1, there.text)
  const wide = await readOptions(member, { field: 'action', ...ages })
  assert.deepEqual(wide.json.values, [{ value: 'a', count: 1 }])
})

test('returns scripts in an event as plain data', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const evil = '<script>alert("x")</script>\u2028"\\'
  await sendEvents(annals, tenant.workspaceKey, [
    {
      category: evil,
      action: evil,
      actor: { id: evil, role: evil },
      resource: { type: evil, id: evil },
      metadata: { [evil]: evil },
    },
  ])
  const page = await explore(member, { text: '<SCRIPT>' })
  assert.equal(page.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(page.json.data[0].category, evil)
  assert.deepEqual(page.json.data[0].metadata, { [evil]: evil })
  for (const field of ['category', 'action', 'actorId', 'resourceType', 'resourceId']) {
    const { json } = await readOptions(member, { field, contains: 'Script' })
    assert.deepEqual(json.values, [{ value: evil, count: 1 }])
  }
  assert.equal((await readHistogram(member, { by: 'action' })).json.series[0].value, evil)
})

test('suggestions are the most frequent values that contain the typed text, with project names', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const projectId = tenant.project.id
  await sendEvents(annals, tenant.workspaceKey, [
    { category: 'Billing', action: 'paid', projectId },
    { category: 'Billing', action: 'paid' },
    { category: 'auth', action: 'login', timestamp: '2020-01-01T00:10:00Z' },
  ])
  for (const isCounted of [false, true]) {
    if (isCounted) await countAll(tenant.workspace.id)
    const { json } = await readOptions(member, { field: 'category' })
    assert.deepEqual(json.values, [
      { value: 'Billing', count: 2 },
      { value: 'auth', count: 1 },
    ])
    const typed = await readOptions(member, { field: 'category', contains: 'BILL' })
    assert.deepEqual(typed.json.values, [{ value: 'Billing', count: 2 }])
    const past = { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' }
    const old = await readOptions(member, { field: 'action', ...past })
    assert.deepEqual(old.json.values, [{ value: 'login', count: 1 }])
    const projects = await readOptions(member, { field: 'projectId' })
    assert.deepEqual(projects.json.values, [
      { value: projectId, label: tenant.project.name, count: 1 },
    ])
  }
})

test('slow searches leave connections for calls with keys', async () => {
  const tenant = await annals.createCompany({ workspaces: ['A', 'B', 'C', 'D'] })
  for (const { workspaceKey } of tenant.workspaces) {
    await sendEvents(annals, workspaceKey, [{ category: 'c', action: 'a' }])
  }
  const member = await signInAs(annals, tenant, 'OWNER')
  const other = await annals.createCompany()
  let searches: Promise<TestResponse>[] = []
  await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await sql`lock table event_value in access exclusive mode`.execute(trx)
      searches = Array.from({ length: 10 }, () => readOptions(member, { field: 'actorId' }))
      await eventually(async () => assert.equal(await countWaiting(), 4))
      const event = { category: 'c', action: 'a' }
      const response = await annals.call('POST', '/v1/events', {
        key: other.workspaceKey,
        body: event,
      })
      assert.equal(response.status, 201, response.text)
    }),
  )
  for (const { status } of await Promise.all(searches)) assert.equal(status, 200)
})

test('a company that searches too much gets an error, and an abandoned search frees its slot', async () => {
  const tenant = await annals.createCompany()
  await sendEvents(annals, tenant.workspaceKey, [{ category: 'c', action: 'a' }])
  const member = await signInAs(annals, tenant, 'OWNER')
  const other = await annals.createCompany()
  await sendEvents(annals, other.workspaceKey, [{ category: 'c', action: 'a' }])
  const neighbor = await signInAs(annals, other, 'OWNER')
  const gone = new AbortController()
  const search = (signal: AbortSignal | null = null) =>
    fetch(`${annals.url}/dashboard/events/filter-options?field=actorId`, {
      headers: { cookie: member.cookie },
      signal,
    })
  let responses: Promise<{ status: number }>[] = []
  await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await sql`lock table event_value in access exclusive mode`.execute(trx)
      responses = Array.from({ length: 4 }, () => search())
      await eventually(async () => assert.equal(await countWaiting(), 4))
      const refused: Response[] = []
      const hungUp = Array.from({ length: 120 }, () =>
        search(gone.signal).then((response) => refused.push(response), String),
      )
      // Up to a hundred requests can wait.
      await eventually(() => assert.equal(refused.length, 20))
      for (const { status, headers } of refused) {
        assert.deepEqual([status, headers.get('retry-after')], [503, '5'])
      }
      // One company's queue doesn't affect another's.
      responses.push(readOptions(neighbor, { field: 'actorId' }))
      gone.abort()
      await Promise.all(hungUp)
      // A request that isn't rejected waits until its client disconnects.
      await eventually(async () => {
        const response = await search(AbortSignal.timeout(300)).catch(() => null)
        assert.equal(response, null)
      })
    }),
  )
  for (const response of responses) assert.equal((await response).status, 200)
})

/** Reads that wait for the lock on the table of values. */
async function countWaiting(): Promise<unknown> {
  const [row] = await query(
    annals.database.connection,
    `select count(*)::int as count from pg_locks
      where not granted and relation = 'event_value'::regclass`,
  )
  return row?.['count']
}

test('a list names the table that the database does not have yet', async () => {
  await using older = await startTestApp({ role: 'api' })
  const tenant = await older.createCompany()
  const member = await signInAs(older, tenant, 'OWNER')
  const missing = ['rollup_head', 'event_value', 'event_rollup']
  await query(older.database.connection, `drop table ${missing.join(', ')}`)
  const assertNamed = ({ headers }: TestResponse) =>
    assert(missing.includes(headers.get('x-service-schema-drift') ?? 'none'))
  const options = await readOptions(member, { field: 'category' })
  assert.equal(options.status, 200, options.text)
  assertNamed(options)
  assert.deepEqual(options.json.values, [])
  const page = await explore(member)
  assertNamed(page)
  assert.deepEqual(page.json.data, [])
  const histogram = await readHistogram(member)
  assert.equal(histogram.status, 200)
  assertNamed(histogram)
})
