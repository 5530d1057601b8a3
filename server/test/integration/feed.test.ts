import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { listPaths, setPlan, startWithBucket } from '../harness/archive/bucket.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { feedPath, followFeed, readFeed } from '../harness/event/feed.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const bucket = await startWithBucket()
after(() => bucket[Symbol.asyncDispose]())
const { annals, s3, clock, advance } = bucket
beforeEach(() => {
  s3.mode = 'pass'
})

const readerOf = ({ workspace, workspaceKey: key }: CreatedCompany) => ({
  key,
  workspaceId: workspace.id,
})

async function store(key: string, count: number, size = 0): Promise<void> {
  const events = Array.from({ length: count }, (_, nth) => ({
    category: 'c',
    action: `event ${nth}`,
    actor: { id: 'u1' },
    // Out of order, so that the order of the query would differ.
    timestamp: new Date(clock() - ((nth * 7) % 10) * 1_000).toISOString(),
    metadata: { nth, text: 'x'.repeat(size) },
  }))
  await storeEvents(annals, key, events)
}

/** The events as the query shows them, in chain order. */
const listChain = async (key: string) =>
  (await walkEvents(annals, key)).toSorted((a, b) => a.seq - b.seq)

async function archive(): Promise<void> {
  assert.equal((await archiveAll(annals)).failed, 0)
}

test('returns every event of the chain in order, as the query shows it, whatever the page size', async () => {
  const tenant = await annals.createCompany()
  await store(tenant.workspaceKey, 1_010)
  const chain = await listChain(tenant.workspaceKey)
  for (const limit of [1_000, 999, 400, 7]) {
    const after = limit === 7 ? 980 : 0
    const options = { after, toSeq: 1_010, limit }
    assert.deepEqual(await followFeed(annals, readerOf(tenant), options), chain.slice(after))
  }
  const byCompany = { ...readerOf(tenant), key: tenant.companyKey }
  const first = await readFeed(annals, byCompany)
  assert.deepEqual([first.json.data, first.json.next], [chain.slice(0, 100), 100])
  assert.match(first.headers.get('content-type') ?? '', /^application\/json/)
  const end = await readFeed(annals, byCompany, { after: 1_010 })
  assert.deepEqual(end.json, { data: [], next: 1_010 })
})

test('an empty chain has an empty feed', async () => {
  const tenant = await annals.createCompany()
  const { status, json } = await readFeed(annals, readerOf(tenant))
  assert.deepEqual([status, json], [200, { data: [], next: 0 }])
})

test('a page of large events ends early, and the next one continues', async () => {
  const tenant = await annals.createCompany()
  await store(tenant.workspaceKey, 60, 200_000)
  let closed = 0
  annals.app.database.pool.on('release', (shouldClose) => void (closed += shouldClose ? 1 : 0))
  const page = await readFeed(annals, readerOf(tenant), { limit: 1_000 })
  assert(page.text.length < 3_000_000, `${page.text.length} characters`)
  assert(page.json.data.length > 5)
  const options = { toSeq: 60, limit: 1_000 }
  assert.equal((await followFeed(annals, readerOf(tenant), options)).length, 60)
  assert.equal(closed, 0, 'no connection was closed because the database sent too much')
  await archive()
  assert.equal((await followFeed(annals, readerOf(tenant), options)).length, 60)
})

test('continues from archived to hot events, and archived events are the same as before', async () => {
  const tenant = await annals.createCompany({ plan: 'STARTER' })
  await store(tenant.workspaceKey, 2_600)
  const first = await listChain(tenant.workspaceKey)
  await archive()
  await store(tenant.workspaceKey, 30)
  const second = await listChain(tenant.workspaceKey)
  await archive()
  await store(tenant.workspaceKey, 20)
  const chain = [...first, ...second, ...(await listChain(tenant.workspaceKey))]
  for (const limit of [1_000, 650]) {
    const options = { toSeq: 2_650, limit }
    assert.deepEqual(await followFeed(annals, readerOf(tenant), options), chain)
  }
})

test('cold files are requested ahead, and the feed continues when they are restored', async () => {
  const tenant = await annals.createCompany()
  const reader = readerOf(tenant)
  for (let files = 0; files < 3; files += 1) {
    await store(tenant.workspaceKey, 3)
    await archive()
  }
  const paths = await listPaths(annals, tenant.workspace.id)
  assert.equal(paths.length, 3)
  for (const path of paths.slice(1)) s3.freeze(path, 'GLACIER')
  // A page ends before a file that has to be restored.
  assert.equal((await readFeed(annals, reader)).json.next, 3)
  const { status, json, headers } = await readFeed(annals, reader, { after: 3 })
  assert.deepEqual([status, json.code], [503, 'archive_restoring'])
  assert.equal(headers.get('retry-after'), '300')
  for (const path of paths.slice(1)) s3.finishRestore(path)
  assert.equal((await followFeed(annals, reader, { toSeq: 9 })).length, 9)
})

test('returns 503 if the storage fails or a file is lost, and still returns hot events', async () => {
  const tenant = await annals.createCompany()
  const reader = readerOf(tenant)
  await store(tenant.workspaceKey, 3)
  await archive()
  await store(tenant.workspaceKey, 2)
  const assertUnavailable = ({ status, json, headers }: TestResponse) => {
    assert.deepEqual([status, json.code], [503, 'unavailable'])
    assert.match(json.error, /archive/)
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  }
  s3.mode = 'fail'
  assertUnavailable(await readFeed(annals, reader))
  assert.equal((await readFeed(annals, reader, { after: 3 })).json.next, 5)
  s3.mode = 'pass'
  const [path = ''] = await listPaths(annals, tenant.workspace.id)
  const key = path.replace('annals/', '')
  const bytes = await annals.app.archive.read(key)
  assert(bytes)
  await annals.app.archive.delete(key)
  assertUnavailable(await readFeed(annals, reader))
  // Also from the middle of the file, where no advice to continue would make sense.
  const middle = await readFeed(annals, reader, { after: 1 })
  assertUnavailable(middle)
  assert.doesNotMatch(middle.json.error, /continue with/)
  assert.equal((await readFeed(annals, reader, { after: 3 })).json.next, 5)
  // The archiver stops without the newest file.
  await annals.app.archive.put(key, bytes)
})

test('returns 503 instead of a gap if the catalog lacks the first files', async () => {
  const tenant = await annals.createCompany()
  const reader = readerOf(tenant)
  for (let files = 0; files < 2; files += 1) {
    await store(tenant.workspaceKey, 3)
    await archive()
  }
  await query(
    annals.database.connection,
    `delete from segment where workspace_id = '${tenant.workspace.id}' and first_seq = 1`,
  )
  // Also if the page ends before the first file that is left.
  for (const limit of [100, 2]) {
    const { status, json } = await readFeed(annals, reader, { limit })
    assert.deepEqual([status, json.code], [503, 'unavailable'])
    assert.match(json.error, /no file with events 1 to 3.*continue with after=3\./)
  }
  assert.equal((await readFeed(annals, reader, { after: 3 })).json.next, 6)
})

test('a workspace of another tenant, an unknown and a malformed id get the same 404', async () => {
  const own = await annals.createCompany({ workspaces: ['A', 'B'] })
  const other = await annals.createCompany()
  await store(other.workspaceKey, 1)
  const [, sibling] = own.workspaces
  assert(sibling)
  const responseFor = async (key: string, id: string) => {
    const path = feedPath(id, { waitSeconds: 1 })
    const { status, text, headers, json } = await annals.call('GET', path, { key })
    return {
      status,
      body: text.replaceAll(json.traceId, 'trace'),
      headers: [...headers].filter(([name]) => name !== 'x-trace-id' && name !== 'date'),
    }
  }
  const unknown = await responseFor(own.workspaceKey, newId())
  assert.equal(unknown.status, 404)
  for (const id of [other.workspace.id, sibling.id, 'no-id']) {
    assert.deepEqual(await responseFor(own.workspaceKey, id), unknown, id)
  }
  for (const id of [other.workspace.id, newId(), 'no-id']) {
    assert.deepEqual(await responseFor(own.companyKey, id), unknown, id)
  }
})

test('a company key can follow the system workspace, but a workspace key cannot', async () => {
  const { company, companyKey, workspaceKey } = await annals.createCompany()
  const [system] = await query(
    annals.database.connection,
    `select id from workspace where company_id = '${company.id}' and kind = 'SYSTEM'`,
  )
  const workspaceId = String(system?.['id'])
  assert.equal((await readFeed(annals, { key: companyKey, workspaceId })).status, 200)
  assert.equal((await readFeed(annals, { key: workspaceKey, workspaceId })).status, 404)
})

test('refuses parameters that are unknown, malformed, repeated or out of bounds, and names them', async () => {
  const tenant = await annals.createCompany()
  await store(tenant.workspaceKey, 2)
  const path = feedPath(tenant.workspace.id)
  const bad: Record<string, readonly string[]> = {
    after: ['-1', '1.5', '0x1', '', ' 1', '1e3', '3', '1000000000000000', 'x'],
    limit: ['0', '1001', '-1', '', 'all'],
    waitSeconds: ['-1', '31', '0.5', '', 'x'],
    cursor: ['1'],
  }
  const refused = async (search: string, name: string) => {
    const { status, json } = await annals.call('GET', `${path}${search}`, {
      key: tenant.workspaceKey,
    })
    assert.deepEqual([status, json.code], [400, 'invalid_request'], search)
    assert(
      json.details.some((detail: { path: string }) => detail.path === name),
      json.error,
    )
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) await refused(`${name}=${encodeURIComponent(value)}`, name)
  }
  for (const name of ['after', 'limit', 'waitSeconds']) await refused(`${name}=1&${name}=1`, name)
})

test('costs one token, however many events it returns', async () => {
  await using limited = await startTestApp()
  const tenant = await limited.createCompany({ plan: 'PRO' })
  const events = Array.from({ length: 500 }, () => ({ category: 'c', action: 'a' }))
  await storeEvents(limited, tenant.workspaceKey, events)
  const remaining = async () =>
    Number(
      (await readFeed(limited, readerOf(tenant), { limit: 500 })).headers.get(
        'ratelimit-remaining',
      ),
    )
  await eventually(async () => assert.equal(await remaining(), 1_999))
})

test('without exports, the response names where to continue, and nothing is skipped silently', async () => {
  const tenant = await annals.createCompany({ plan: 'FREE' })
  const reader = readerOf(tenant)
  await store(tenant.workspaceKey, 5)
  await archive()
  await store(tenant.workspaceKey, 4)
  for (const after of [0, 4]) {
    const { status, json } = await readFeed(annals, reader, { after })
    assert.deepEqual([status, json.code], [403, 'plan_required'])
    assert.match(json.error, /after=5,/)
    assert.deepEqual(
      json.details.map(({ path }: { path: string }) => path),
      ['after'],
    )
  }
  assert.equal((await followFeed(annals, reader, { after: 5, toSeq: 9 })).length, 4)
  // They are no longer hot, but still in the table. No later test of this file can archive.
  advance(7 * DAY_MS + 1)
  const refused = await readFeed(annals, reader, { after: 5 })
  assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
  assert.match(refused.json.error, /after=9,/)
  assert.deepEqual((await readFeed(annals, reader, { after: 9 })).json, { data: [], next: 9 })
  await store(tenant.workspaceKey, 1)
  assert.equal((await followFeed(annals, reader, { after: 9, toSeq: 10 })).length, 1)
  await setPlan(annals, tenant, 'STARTER')
  assert.equal((await followFeed(annals, reader, { toSeq: 10 })).length, 10)
})
