import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import {
  explore,
  type Parameters,
  readHistogram,
  search,
  sendEvents,
  walkExplorer,
} from '../harness/dashboard/explorer.ts'
import { exportRows, readJob } from '../harness/export/exports.ts'
import { buildSearchBlocks, walkEvents } from '../harness/event/metadata-search.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const IP = '185.220.101.3'
const TRACE = '0af7651916cd43dd8448eb211c80319c'

const events = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => {
    const nth = from + index
    return {
      category: nth % 2 === 0 ? 'auth' : 'billing',
      action: nth % 9 === 0 ? IP : 'login',
      actor: { id: `u${nth % 5}`, role: nth % 3 === 0 ? 'admin' : 'member' },
      metadata: { ip: nth % 7 === 0 ? IP : '192.0.2.1', request: { id: `req_${nth}` } },
    }
  })

const actionsOf = (json: TestResponse['json']) =>
  json.map(({ metadata }: { metadata: { request: { id: string } } }) => metadata.request.id)

async function seed(count = 60) {
  const company = await annals.createCompany({ plan: 'PRO' })
  const member = await signInAs(annals, company, 'ADMIN')
  await sendEvents(annals, company.workspaceKey, events(count))
  return { company, member, key: company.workspaceKey }
}

const CASES: [Parameters, (event: TestResponse['json']) => boolean][] = [
  [{ 'metadata.ip': IP }, ({ metadata }) => metadata.ip === IP],
  [
    { 'metadata.request.id': ['req_4', 'req_40'] },
    ({ metadata }) => ['req_4', 'req_40'].includes(metadata.request.id),
  ],
  [{ hasMetadata: 'request' }, () => true],
  [{ hasMetadata: 'nothing' }, () => false],
  [{ actorRole: 'admin' }, ({ actor }) => actor.role === 'admin'],
  [
    { 'metadata.ip': IP, category: 'auth', actorRole: 'member' },
    ({ metadata, category, actor }) =>
      metadata.ip === IP && category === 'auth' && actor.role === 'member',
  ],
  [{ text: IP }, ({ metadata, action }) => metadata.ip === IP || action === IP],
  [{ text: '220.101' }, ({ action }) => action === IP],
  [{ text: 'REQ_33' }, ({ metadata }) => metadata.request.id === 'req_33'],
  [
    { text: IP, 'metadata.ip': '192.0.2.1', actorId: 'u1' },
    ({ metadata, action, actor }) => metadata.ip !== IP && action === IP && actor.id === 'u1',
  ],
]

/** Compares pages and histograms with a plain scan. */
async function assertExplored(member: Member): Promise<void> {
  const all = await walkExplorer(member)
  for (const [parameters, isMatch] of CASES) {
    const expected = actionsOf(all.filter(isMatch))
    const found = await walkExplorer(member, { limit: '10', ...parameters })
    assert.deepEqual(actionsOf(found), expected, JSON.stringify(parameters))
    const { json } = await readHistogram(member, { by: 'category', ...parameters })
    assert.equal(json.total, expected.length, JSON.stringify(parameters))
  }
}

test('the explorer finds and counts what a plain scan finds', async () => {
  const { company, member, key } = await seed()
  const { id } = company.workspace
  await assertExplored(member)
  await buildSearchBlocks(db, id, 8)
  await assertExplored(member)
  await advanceRollup(db, id, { runMax: 30 })
  await sendEvents(annals, key, events(30, 60))
  await assertExplored(member)
  await advanceRollup(db, id, { runMax: 1_000 })
  await buildSearchBlocks(db, id, 1)
  await assertExplored(member)
})

test('a saved view keeps its metadata filters, and an export of it has the same events', async () => {
  const { company, member, key } = await seed()
  const query = {
    metadata: { ip: IP },
    hasMetadata: ['request'],
    actorRole: 'admin',
    text: 'req_21',
  }
  const { status, json: view } = await member.call('POST', '/dashboard/explorer/views', {
    body: { name: 'From the address', workspaceId: null, visibility: 'PRIVATE', query },
  })
  assert.equal(status, 201)
  assert.deepEqual(view.query, query)
  const ran = await member.call('POST', `/dashboard/explorer/views/${view.id}/run`, { body: {} })
  assert.deepEqual(actionsOf(ran.json.data), ['req_21'])
  const create = async (filters: object) => {
    const body = { source: 'HOT', format: 'JSONL', savedExplorerViewId: view.id, filters }
    const created = await member.call('POST', '/dashboard/exports', { body })
    assert.equal(created.status, 201, created.text)
    return await readJob(annals, company.companyKey, created.json.jobId ?? created.json.id)
  }
  const { filters } = await create({})
  assert.deepEqual(filters, {
    metadata: { ip: [IP] },
    hasMetadata: ['request'],
    actorRole: 'admin',
    text: 'req_21',
  })
  const other = await create({ metadata: { ip: ['192.0.2.1'], 'request.id': 'req_3' } })
  assert.deepEqual(other.filters.metadata, { ip: ['192.0.2.1'], 'request.id': ['req_3'] })
  assert.equal((await walkEvents(annals, key, { 'metadata.ip': IP })).length, 9)
})

test('an export has the events of its metadata filter, hot and archived', async () => {
  const { key, company } = await seed()
  const all = await walkEvents(annals, key)
  const filters = { metadata: { ip: IP }, actorRole: 'member', hasMetadata: ['request.id'] }
  const expected = all
    .filter(({ metadata, actor }) => metadata.ip === IP && actor.role === 'member')
    .map(({ id }) => id)
    .toReversed()
  assert(expected.length > 3)
  const rowsOf = async (options: object) => {
    return (await exportRows(annals, key, options)).map(({ id }) => id)
  }
  assert.deepEqual(await rowsOf({ filters }), expected)
  await buildSearchBlocks(db, company.workspace.id, 8)
  await archiveAll(annals)
  const range = { from: '2000-01-01T00:00:00Z', to: new Date(Date.now() + 60_000).toISOString() }
  const archived = { source: 'ARCHIVED', filters: { ...filters, ...range } }
  assert.deepEqual(await rowsOf(archived), expected)
  const byText = { source: 'ARCHIVED', filters: { q: 'REQ_14', ...range } }
  assert.equal((await rowsOf(byText)).length, 1)
})

test('finds an event by its trace id', async () => {
  const { key, company } = await seed(20)
  const { json } = await annals.call('POST', '/v1/events', {
    key,
    headers: { traceparent: `00-${TRACE}-b7ad6b7169203331-01` },
    body: { category: 'c', action: 'a' },
  })
  await sendEvents(annals, key, events(20, 20))
  for (let round = 0; round < 2; round += 1) {
    const found = await walkEvents(annals, key, { traceId: TRACE })
    assert.deepEqual(
      found.map(({ id }) => id),
      [json.id],
    )
    await buildSearchBlocks(db, company.workspace.id, 4)
  }
})

test('refuses metadata filters beyond their bounds, and says which', async () => {
  const { key, member } = await seed(1)
  const long = 'x'.repeat(257)
  const paths = Object.fromEntries(
    Array.from({ length: 11 }, (_, nth) => [`metadata.p${nth}`, 'x']),
  )
  const cases: [Parameters, string, RegExp][] = [
    [{ [`metadata.${long}`]: 'x' }, 'metadata', /1 to 256 characters/],
    [{ 'metadata.': 'x' }, 'metadata', /1 to 256 characters/],
    [{ 'metadata.a': 'x'.repeat(1_025) }, 'metadata.a/0', /1024 characters/],
    [{ 'metadata.a': Array(21).fill('x') }, 'metadata.a', /20 items/],
    [paths, 'metadata', /10/],
    [{ metadata: 'x' }, 'metadata', /must be followed by a path, such as metadata\.ip=/],
    [{ hasMetadata: '' }, 'hasMetadata/0', /must not be empty/],
    [{ hasMetadata: long }, 'hasMetadata/0', /256 characters/],
    [{ 'metadata.a\0': 'x' }, 'metadata.a\0', /U\+0000/],
    [{ 'metadataX.a': 'x' }, 'metadataX.a', /not a known parameter/],
  ]
  for (const [parameters, path, message] of cases) {
    for (const { status, json } of [
      await annals.call('GET', `/v1/events${search(parameters)}`, { key }),
      await explore(member, parameters),
    ]) {
      assert.equal(status, 400, JSON.stringify(parameters))
      assert.equal(json.code, 'invalid_request')
      assert.equal(json.details[0].path, path)
      assert.match(json.details[0].message, message)
    }
  }
  const { status, json } = await annals.call('POST', '/v1/exports', {
    key,
    body: { source: 'HOT', format: 'CSV', filters: { metadata: { a: ['x', 1] } } },
  })
  assert.deepEqual([status, json.code], [400, 'invalid_request'])
  const large = { a: Array(20).fill('é'.repeat(1_000)) }
  const refused = await annals.call('POST', '/v1/exports', {
    key,
    body: { source: 'HOT', format: 'CSV', filters: { metadata: large } },
  })
  assert.match(refused.json.error, /\/filters\/metadata takes .* bytes/)
})

test('a cursor is bound to the metadata filters, whatever their order', async () => {
  const { key } = await seed()
  const first = { 'metadata.ip': ['192.0.2.1', IP], hasMetadata: ['ip', 'request'], limit: '5' }
  const { json } = await annals.call('GET', `/v1/events${search(first)}`, { key })
  const cursor: string = json.nextCursor
  assert(cursor)
  const next = (parameters: Parameters) =>
    annals.call('GET', `/v1/events${search({ ...parameters, cursor })}`, { key })
  const same = { 'metadata.ip': [IP, '192.0.2.1'], hasMetadata: ['request', 'ip'], limit: '9' }
  assert.equal((await next(same)).status, 200)
  for (const other of [
    { ...first, 'metadata.ip': IP },
    { ...first, hasMetadata: 'ip' },
    { ...first, actorRole: 'admin' },
    { ...first, q: 'x' },
  ]) {
    assert.equal((await next(other)).json.code, 'invalid_cursor')
  }
})
