import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { insertProject, insertWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { newId } from '../../src/platform/id.ts'
import { idsOf, listPage, walkEvents } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

type EventRecord = TestResponse['json']

const START_MS = Date.now() - 3_600_000
const at = (ms: number) => new Date(START_MS + ms).toISOString()

/** Sends events with these timestamps, in this order. */
async function seed(key: string, timestampsMs: readonly number[], category = 'c'): Promise<void> {
  for (let start = 0; start < timestampsMs.length; start += 500) {
    const events = timestampsMs
      .slice(start, start + 500)
      .map((ms) => ({ category, action: `at ${ms}`, timestamp: at(ms) }))
    const response = await annals.call('POST', '/v1/events/batch', { key, body: { events } })
    assert.equal(response.status, 200, response.text)
  }
}

const isNewestFirst = (events: readonly EventRecord[]) =>
  events.every((event, index) => {
    const before = events[index - 1]
    if (!before) return true
    return before.timestamp === event.timestamp
      ? before.id > event.id
      : before.timestamp > event.timestamp
  })

/** Reads page by page. `between` runs after each page. */
async function walkSlowly(
  key: string,
  parameters: Record<string, string>,
  between: (page: number) => Promise<void> = async () => {},
): Promise<EventRecord[]> {
  const events: EventRecord[] = []
  let cursor: string | null = null
  for (let page = 1; page === 1 || cursor !== null; page += 1) {
    const { json, status, text } = await listPage(annals, key, {
      ...parameters,
      ...(cursor !== null && { cursor }),
    })
    assert.equal(status, 200, text)
    events.push(...json.data)
    cursor = json.nextCursor
    await between(page)
  }
  return events
}

test('events are sorted newest first by their timestamp, then by id', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await seed(key, [5, 1, 3, 3, 3, -7_000_000_000, 2, 4, 3])
  const events = await walkEvents(annals, key)
  assert(isNewestFirst(events))
  assert.deepEqual(
    events.map(({ action }) => action),
    [5, 4, 3, 3, 3, 3, 2, 1, -7_000_000_000].map((ms) => `at ${ms}`),
  )
})

test('paging with any page size returns each event once', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await seed(
    key,
    Array.from({ length: 37 }, (_, index) => index % 7),
  )
  const all = await walkEvents(annals, key)
  assert.equal(all.length, 37)
  for (const limit of [1, 2, 5, 36, 37, 38, 200]) {
    const walked = await walkSlowly(key, { limit: String(limit) })
    assert.deepEqual(walked, all, `limit ${limit}`)
  }
})

test('events with the same timestamp are each returned once', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await seed(
    key,
    Array.from({ length: 25 }, () => 0),
  )
  const walked = await walkSlowly(key, { limit: '4' })
  assert.equal(new Set(walked.map(({ id }) => id)).size, 25)
  assert.equal(walked.length, 25)
  assert(isNewestFirst(walked))
})

test('new events during paging neither repeat nor hide existing ones', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await seed(
    key,
    Array.from({ length: 60 }, (_, index) => index * 10),
  )
  const before = (await walkEvents(annals, key)).map(({ id }) => id)
  const walked = await walkSlowly(key, { limit: '7' }, async (page) => {
    // Some are in the pages already read, some in those to come.
    await seed(key, [100_000 + page, 595 - page * 70, 5], 'new')
  })
  const ids = walked.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  assert.deepEqual(
    walked.filter(({ category }) => category === 'c').map(({ id }) => id),
    before,
  )
  assert(isNewestFirst(walked))
})

test('a company key pages through all its workspaces as one list', async () => {
  const names = ['One', 'Two', 'Three', 'Four', 'Five'] as const
  const { companyKey, workspaces } = await annals.createCompany({ workspaces: names })
  const expected: string[] = []
  for (const [index, { workspaceKey }] of workspaces.entries()) {
    // The fifth stays empty; the others overlap and share timestamps.
    const count = [30, 1, 12, 45, 0][index] ?? 0
    await seed(
      workspaceKey,
      Array.from({ length: count }, (_, n) => (n * (index + 2)) % 40),
    )
    expected.push(...idsOf(await walkEvents(annals, workspaceKey)))
  }
  for (const limit of ['1', '7', '88', '200']) {
    const walked = await walkSlowly(companyKey, { limit })
    assert(isNewestFirst(walked))
    assert.deepEqual(idsOf(walked).toSorted(), expected.toSorted(), `limit ${limit}`)
  }
  const named = await walkSlowly(companyKey, { workspaceId: workspaces[2]?.id ?? '', limit: '5' })
  assert.deepEqual(named, await walkEvents(annals, workspaces[2]?.workspaceKey ?? ''))
})

test('paging continues when a workspace is added to the company', async () => {
  const { company, companyKey, workspaceKey } = await annals.createCompany()
  await seed(workspaceKey, [1, 2, 3])
  const walked = await walkSlowly(companyKey, { limit: '1' }, async (page) => {
    const id = newId<'workspace'>()
    await annals.app.database.db
      .transaction()
      .execute((trx) =>
        insertWorkspace(trx, { id, companyId: company.id, name: `New ${page}`, kind: 'CUSTOMER' }),
      )
  })
  assert.equal(walked.length, 3)
})

test('nextCursor is null only on the last page', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const empty = await listPage(annals, key)
  assert.deepEqual(empty.json, { data: [], nextCursor: null })
  await seed(key, [1, 2, 3, 4])
  for (const [limit, hasMore] of [
    ['3', true],
    ['4', false],
    ['5', false],
  ] as const) {
    const { json } = await listPage(annals, key, { limit })
    assert.equal(json.nextCursor !== null, hasMore, limit)
  }
})

test('a page has 50 events by default, and 1 to 200 on request', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await seed(
    key,
    Array.from({ length: 201 }, (_, index) => index),
  )
  const sizes = new Map([
    ['', 50],
    ['limit=1', 1],
    ['limit=200', 200],
  ])
  for (const [search, size] of sizes) {
    const { json } = await annals.call('GET', `/v1/events?${search}`, { key })
    assert.equal(json.data.length, size)
  }
  for (const limit of [
    '0',
    '201',
    '-1',
    '1.5',
    '1e2',
    '01',
    '',
    ' 5',
    'ten',
    '99999999999999999',
  ]) {
    const { status, json } = await listPage(annals, key, { limit })
    assert.deepEqual([status, json.code], [400, 'invalid_request'], limit)
    assert.equal(json.details[0].path, 'limit', limit)
  }
})

test('the page size can change between pages', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await seed(
    key,
    Array.from({ length: 10 }, (_, index) => index),
  )
  const first = await listPage(annals, key, { limit: '3' })
  const rest = await listPage(annals, key, { limit: '50', cursor: first.json.nextCursor })
  assert.deepEqual([first.json.data.length, rest.json.data.length], [3, 7])
})

test('a cursor is valid only for its own query', async () => {
  const tenant = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const { workspaceKey: key, companyKey, workspace } = tenant
  const stranger = await annals.createCompany()
  const sibling = tenant.workspaces[1]?.workspaceKey ?? ''
  for (const owner of [key, stranger.workspaceKey, sibling]) await seed(owner, [1, 2, 3, 4])
  const page = await listPage(annals, key, { limit: '2' })
  const cursor = String(page.json.nextCursor)
  const companyPage = await listPage(annals, companyKey, { limit: '2' })
  const companyCursor = String(companyPage.json.nextCursor)
  const filtered = await listPage(annals, key, { limit: '2', category: 'c', from: at(0) })
  const foreign: [key: string, parameters: Record<string, string>][] = [
    [stranger.workspaceKey, { cursor }],
    [stranger.companyKey, { cursor }],
    [sibling, { cursor }],
    [companyKey, { cursor }],
    [key, { cursor: companyCursor }],
    [companyKey, { cursor: companyCursor, workspaceId: workspace.id }],
    [key, { cursor, category: 'c' }],
    [key, { cursor, action: 'c' }],
    [key, { cursor, from: at(0) }],
    [key, { cursor, to: at(1_000) }],
    [key, { cursor, projectId: tenant.project.id }],
    [key, { cursor, actorId: '' }],
    [key, { cursor: filtered.json.nextCursor }],
    [key, { cursor: filtered.json.nextCursor, action: 'c', from: at(0) }],
    [key, { cursor: filtered.json.nextCursor, category: 'c', to: at(0) }],
    [key, { cursor: filtered.json.nextCursor, category: 'c', from: at(1) }],
    [key, { cursor: '' }],
    [key, { cursor: 'x' }],
    [key, { cursor: `${cursor}=` }],
    [key, { cursor: cursor.slice(0, -1) }],
    [key, { cursor: `${cursor.slice(0, -2)}${cursor.endsWith('AA') ? 'BB' : 'AA'}` }],
    [key, { cursor: `${cursor.startsWith('A') ? 'B' : 'A'}${cursor.slice(1)}` }],
  ]
  for (const [asker, parameters] of foreign) {
    const { status, json } = await listPage(annals, asker, parameters)
    assert.deepEqual([status, json.code], [400, 'invalid_cursor'], JSON.stringify(parameters))
  }
  // The same instant in another notation is the same filter.
  const spelled = at(0).replace('Z', '+00:00')
  const again = { cursor: filtered.json.nextCursor, from: spelled, category: 'c' }
  assert.equal((await listPage(annals, key, again)).status, 200)
})

test('rejects unknown and repeated parameters, and names them', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const searches: [search: string, path: string][] = [
    ['unknown=1', 'unknown'],
    ['Limit=5', 'Limit'],
    ['limit=5&limit=5', 'limit'],
    ['actorId=a&actorId=a', 'actorId'],
    ['order=asc&order=asc', 'order'],
    ['traceId=a&traceId=a', 'traceId'],
    ['seqFrom=1&seqFrom=1', 'seqFrom'],
    ['receivedFrom=2026-03-01T12:00:00Z&receivedFrom=2026-03-01T12:00:00Z', 'receivedFrom'],
    [Array.from({ length: 21 }, (_, nth) => `category=${nth}`).join('&'), 'category'],
    [Array.from({ length: 21 }, () => 'action=a').join('&'), 'action'],
    ['category=a&category=b%00', 'category'],
    ['order=newest', 'order'],
    ['order=', 'order'],
    ['receivedFrom=yesterday', 'receivedFrom'],
    ['receivedTo=2026-03-01', 'receivedTo'],
    ['receivedFrom=2026-03-01T12:00:00Z&receivedTo=2026-03-01T12:00:00Z', 'receivedFrom'],
    ['traceId=xyz', 'traceId'],
    [`traceId=${'a'.repeat(33)}`, 'traceId'],
    ['seqFrom=0', 'seqFrom'],
    ['seqFrom=01', 'seqFrom'],
    ['seqTo=1.5', 'seqTo'],
    ['seqTo=9999999999999999', 'seqTo'],
    ['seqFrom=3&seqTo=2', 'seqFrom'],
    ['category[]=a', 'category[]'],
    ['from=yesterday', 'from'],
    ['to=2026-03-01', 'to'],
    ['from=2026-03-01T12:00:00', 'from'],
    ['from=2026-03-01T12:00:00Z&to=2026-03-01T12:00:00Z', 'from'],
    ['from=2026-03-01T12:00:01Z&to=2026-03-01T12:00:00Z', 'from'],
    ['projectId=x', 'projectId'],
    ['category=a%00b', 'category'],
    ['actorId=%00', 'actorId'],
  ]
  for (const [search, path] of searches) {
    const { status, json, text } = await annals.call('GET', `/v1/events?${search}`, { key })
    assert.deepEqual([status, json.code], [400, 'invalid_request'], `${search} ${text}`)
    assert.equal(json.details[0].path, path, `${search} ${text}`)
  }
})

test('rejects a query that is not percent-encoded UTF-8', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (const text of ['%ff', '%C3', '%ED%A0%80', '%', '%zz']) {
    const { status, json } = await annals.call('GET', `/v1/events?category=${text}`, { key })
    assert.deepEqual([status, json.code], [400, 'invalid_request'], text)
  }
  const fine = await annals.call('GET', '/v1/events?category=%C3%A9%F0%9F%8E%88%25', { key })
  assert.equal(fine.status, 200)
})

test('a new project is known immediately', async () => {
  const { workspaceKey: key, workspace, company } = await annals.createCompany()
  const id = newId<'project'>()
  const body = { category: 'c', action: 'a', projectId: id }
  assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 400)
  const project = { id, companyId: company.id, workspaceId: workspace.id, name: 'New' }
  await annals.app.database.db.transaction().execute((trx) => insertProject(trx, project))
  assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
})

test('a page of large events ends before its limit, and its cursor leads to the rest', async () => {
  const { workspaces, companyKey } = await annals.createCompany({ workspaces: ['A', 'B', 'C'] })
  const metadata = { blob: 'x'.repeat(250_000) }
  for (let nth = 0; nth < 12; nth += 1) {
    for (const { workspaceKey: key } of workspaces) {
      const body = { category: 'large', action: `event ${nth}`, timestamp: at(nth), metadata }
      const response = await annals.call('POST', '/v1/events', { key, body })
      assert.equal(response.status, 201, response.text)
    }
  }
  const walk = async (key: string) => {
    const ids: string[] = []
    for (let cursor: string | null = null, page = 0; page === 0 || cursor !== null; page += 1) {
      const next: Record<string, string> = cursor === null ? {} : { cursor }
      const { json, text } = await listPage(annals, key, { limit: '200', ...next })
      assert(text.length < 2_500_000, `a page of ${text.length} bytes`)
      assert(json.data.length > 0, 'no page is empty')
      ids.push(...idsOf(json.data))
      cursor = json.nextCursor
    }
    return ids
  }
  const all = await walk(companyKey)
  assert.equal(all.length, 36)
  assert.equal(new Set(all).size, 36)
  for (const { workspaceKey } of workspaces) {
    const own = await walk(workspaceKey)
    assert.equal(own.length, 12)
    assert.deepEqual(
      own,
      all.filter((id) => own.includes(id)),
      'the same order',
    )
  }
})
