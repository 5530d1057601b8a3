import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { idFloor } from '../../src/ledger/event-store.ts'
import { newId } from '../../src/platform/id.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { listPaths, setPlan, startWithBucket } from '../harness/archive/bucket.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import type { TestResponse } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const bucket = await startWithBucket()
after(() => bucket[Symbol.asyncDispose]())
const { annals, s3, clock, advance } = bucket
beforeEach(() => {
  s3.mode = 'pass'
})

type EventRecord = TestResponse['json']

const get = (key: string, id: string) => annals.call('GET', `/v1/events/${id}`, { key })

/** Everything but the trace id, which is every response's own. */
const comparable = ({ status, text, headers, json }: TestResponse) => ({
  status,
  body: text.replaceAll(json.traceId, 'trace'),
  headers: [...headers].filter(([name]) => name !== 'x-trace-id' && name !== 'date'),
})

/** Stores events and returns them as the query shows them, oldest first. */
async function store(key: string, count: number): Promise<EventRecord[]> {
  const events = Array.from({ length: count }, (_, nth) => ({
    category: 'c',
    action: `event ${nth}`,
    actor: { id: 'u1' },
    metadata: { nth },
  }))
  await storeEvents(annals, key, events)
  return (await walkEvents(annals, key)).toSorted((a, b) => a.seq - b.seq)
}

const BOTH = ['first', 'second'].map((action) => ({ category: 'c', action }))

/** An id of the same time that no event has. */
const besides = (id: string) => `${id.slice(0, 24)}${id[24] === '0' ? '1' : '0'}${id.slice(25)}`

test('returns any event of the chain as the query shows it, to both keys of its company', async () => {
  const { workspaceKey, companyKey } = await annals.createCompany({ workspaces: ['A', 'B'] })
  const events = await store(workspaceKey, 130)
  for (const event of events.filter(({ seq }) => seq % 10 === 0 || seq === 1)) {
    for (const key of [workspaceKey, companyKey]) {
      for (const id of [event.id, event.id.toUpperCase()]) {
        const { status, json, headers } = await get(key, id)
        assert.deepEqual([status, json], [200, event])
        assert.match(headers.get('content-type') ?? '', /^application\/json/)
      }
    }
  }
  for (const { id } of events.slice(0, 20)) {
    assert.equal((await get(workspaceKey, besides(id))).status, 404)
  }
})

test('events of another company or workspace, unknown and malformed ids get the same 404', async () => {
  const own = await annals.createCompany({ workspaces: ['A', 'B'] })
  const other = await annals.createCompany()
  const [, sibling] = own.workspaces
  assert(sibling)
  await store(own.workspaceKey, 3)
  const [theirs] = await store(other.workspaceKey, 3)
  const [siblings] = await store(sibling.workspaceKey, 3)
  const extremes = [idFloor(0), 'ffffffff-ffff-7fff-bfff-ffffffffffff']
  const assertHidden = async () => {
    const unknown = comparable(await get(own.workspaceKey, newId(clock())))
    assert.equal(unknown.status, 404)
    for (const id of [theirs.id, siblings.id, besides(theirs.id), 'no-id', ...extremes]) {
      assert.deepEqual(comparable(await get(own.workspaceKey, id)), unknown, id)
    }
    for (const id of [theirs.id, newId(clock()), 'no-id']) {
      assert.deepEqual(comparable(await get(own.companyKey, id)), unknown, id)
    }
  }
  await assertHidden()
  assert.equal((await archiveAll(annals)).failed, 0)
  await assertHidden()
  assert.equal((await get(own.companyKey, siblings.id)).status, 200)
})

test('an archived event is the same as before, and needs a plan with exports', async () => {
  const tenant = await annals.createCompany({ plan: 'STARTER' })
  const { workspaceKey, companyKey } = tenant
  // Two files, one of them with several row groups.
  const first = await store(workspaceKey, 5_200)
  assert.equal((await archiveAll(annals)).failed, 0)
  const second = await store(workspaceKey, 10)
  assert.equal((await archiveAll(annals)).failed, 0)
  assert.deepEqual(await walkEvents(annals, workspaceKey), [])
  const sampled = [0, 1, 2_499, 2_500, 4_000, 5_199].map((index) => first[index])
  for (const event of [...sampled, ...second.slice(0, 2), second.at(-1)]) {
    for (const key of [workspaceKey, companyKey]) {
      const { status, json, text } = await get(key, event.id)
      assert.deepEqual([status, json], [200, event], text)
    }
    const unknown = await get(workspaceKey, besides(event.id))
    assert.deepEqual([unknown.status, unknown.json.code], [404, 'not_found'])
  }
})

test('without a plan with exports, the archive is not read, whether or not it has the event', async () => {
  const tenant = await annals.createCompany({ plan: 'FREE' })
  const { workspaceKey, companyKey } = tenant
  const earlier = newId<'event'>(clock() - DAY_MS)
  const [event] = await store(workspaceKey, 1)
  advance(1)
  await store(workspaceKey, 1)
  assert.equal((await archiveAll(annals)).failed, 0)
  s3.requests.length = 0
  for (const key of [workspaceKey, companyKey]) {
    const refused = await get(key, event.id)
    assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
    assert.deepEqual(comparable(await get(key, besides(event.id))), comparable(refused))
    for (const id of [earlier, newId<'event'>(clock() + 1)]) {
      assert.equal((await get(key, id)).status, 404)
    }
  }
  assert.deepEqual(s3.requests, [])
})

test('finding an archived event reads one row group of its file', async () => {
  const tenant = await annals.createCompany()
  // Several row groups, and each time is in at most two of them.
  for (let times = 0; times < 3; times += 1) {
    await store(tenant.workspaceKey, 1_200)
    advance(1_000)
  }
  const events = await walkEvents(annals, tenant.workspaceKey)
  const [last] = events
  const first = events.at(-1)
  assert(first && last)
  assert.equal((await archiveAll(annals)).failed, 0)
  const readsOf = async (id: string) => {
    s3.requests.length = 0
    const { status } = await get(tenant.workspaceKey, id)
    return [status, s3.requests.length]
  }
  // The footer and the row group.
  assert.deepEqual(await readsOf(last.id), [200, 2])
  assert.deepEqual(await readsOf(first.id), [200, 2])
  assert.deepEqual(await readsOf(besides(first.id)), [404, 2])
})

test('a cold file is restored once the plan allows it, and the event is there afterwards', async () => {
  const tenant = await annals.createCompany({ plan: 'FREE' })
  const { workspaceKey } = tenant
  const [event] = await store(workspaceKey, 3)
  assert.equal((await archiveAll(annals)).failed, 0)
  const [path] = await listPaths(annals, tenant.workspace.id)
  assert(path)
  s3.freeze(path, 'GLACIER')
  const refused = await get(workspaceKey, event.id)
  assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
  assert.throws(() => s3.finishRestore(path), /no restore was requested/)
  await setPlan(annals, tenant, 'STARTER')
  for (const restoring of [await get(workspaceKey, event.id), await get(workspaceKey, event.id)]) {
    assert.deepEqual([restoring.status, restoring.json.code], [503, 'archive_restoring'])
    assert.equal(restoring.headers.get('retry-after'), '300')
  }
  s3.finishRestore(path)
  const { status, json } = await get(workspaceKey, event.id)
  assert.deepEqual([status, json], [200, event])
})

test('a company key requests the restore of every cold file that can contain the event at once', async () => {
  const tenant = await annals.createCompany({ workspaces: ['A', 'B', 'C'] })
  for (const { workspaceKey } of tenant.workspaces) await storeEvents(annals, workspaceKey, BOTH)
  // The lowest id, so that the files of all workspaces end after it.
  const [event] = (await walkEvents(annals, tenant.companyKey)).toSorted((a, b) =>
    a.id < b.id ? -1 : 1,
  )
  assert.equal((await archiveAll(annals)).failed, 0)
  const paths = (await Promise.all(tenant.workspaces.map(({ id }) => listPaths(annals, id)))).flat()
  assert.equal(paths.length, 3)
  for (const path of paths) s3.freeze(path, 'GLACIER')
  const restoring = await get(tenant.companyKey, event.id)
  assert.deepEqual([restoring.status, restoring.json.code], [503, 'archive_restoring'])
  for (const path of paths) s3.finishRestore(path)
  assert.deepEqual((await get(tenant.companyKey, event.id)).json, event)
})

test('a file that is missing or damaged gives a 503, except for events that another file contains', async () => {
  const tenant = await annals.createCompany({ workspaces: ['A', 'B'] })
  const [first, second] = tenant.workspaces
  assert(first && second)
  for (const { workspaceKey } of [first, second]) await storeEvents(annals, workspaceKey, BOTH)
  const [lost] = await walkEvents(annals, first.workspaceKey)
  const [kept] = await walkEvents(annals, second.workspaceKey)
  assert.equal((await archiveAll(annals)).failed, 0)
  const [path] = await listPaths(annals, first.id)
  assert(path)
  const key = path.replace('annals/', '')
  const { archive } = annals.app
  const bytes = await archive.read(key)
  assert(bytes)
  const damaged = Buffer.from(bytes)
  damaged.fill(0, 10, 100)
  for (const content of [damaged, null]) {
    await archive.delete(key)
    if (content) await archive.put(key, content)
    for (const used of [first.workspaceKey, tenant.companyKey]) {
      const { status, json, headers } = await get(used, lost.id)
      assert.deepEqual([status, json.code], [503, 'unavailable'])
      assert.match(json.error, /^A file of the archive is missing or damaged\./)
      assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    }
    assert.equal((await get(tenant.companyKey, kept.id)).status, 200)
  }
  // The archiver stops without the newest file.
  await archive.put(key, bytes)
})

test('a request for an archived event gets a 503 while the storage fails, and hot events are returned', async () => {
  const tenant = await annals.createCompany()
  const [archived] = await store(tenant.workspaceKey, 1)
  assert.equal((await archiveAll(annals)).failed, 0)
  const [hot] = await store(tenant.workspaceKey, 1)
  s3.mode = 'fail'
  const { status, json, headers } = await get(tenant.workspaceKey, archived.id)
  assert.deepEqual([status, json.code], [503, 'unavailable'])
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.equal((await get(tenant.workspaceKey, hot.id)).status, 200)
})

test('requests for archived events take turns, and leave slots for other requests', async () => {
  const { workspaceKey } = await annals.createCompany()
  const archived = await store(workspaceKey, 8)
  assert.equal((await archiveAll(annals)).failed, 0)
  const [hot] = await store(workspaceKey, 1)
  const { promise, resolve } = Promise.withResolvers<void>()
  s3.delay = promise
  s3.requests.length = 0
  const waiting = archived.map(({ id }) => get(workspaceKey, id))
  await eventually(() => assert(s3.requests.some(({ method }) => method === 'GET')))
  assert.equal((await get(workspaceKey, hot.id)).status, 200)
  s3.delay = null
  resolve()
  const received = (await Promise.all(waiting)).map(({ json }) => json)
  assert.deepEqual(received, archived)
})

test('a company key can get an event of the system workspace, but a workspace key cannot', async () => {
  const { company, workspace, workspaceKey, companyKey } = await annals.createCompany()
  await store(workspaceKey, 1)
  const [system] = await query(
    annals.database.connection,
    `select id from workspace where company_id = '${company.id}' and kind = 'SYSTEM'`,
  )
  const id = newId(clock())
  // It breaks the chain, so no later test of this file archives.
  await query(
    annals.database.connection,
    `insert into event select (e).* from (
       select jsonb_populate_record(e, jsonb_build_object('workspace_id', '${String(system?.['id'])}',
                'id', '${id}')) as e
         from event e where workspace_id = '${workspace.id}') as copies`,
  )
  assert.equal((await get(companyKey, id)).status, 200)
  assert.equal((await get(workspaceKey, id)).status, 404)
})

test('an event that is no longer hot needs a plan with exports, even if it is not archived yet', async () => {
  const tenant = await annals.createCompany({ plan: 'FREE' })
  const [event] = await store(tenant.workspaceKey, 1)
  assert.equal((await get(tenant.workspaceKey, event.id)).status, 200)
  advance(7 * DAY_MS + 1)
  const refused = await get(tenant.workspaceKey, event.id)
  assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
  await setPlan(annals, tenant, 'STARTER')
  assert.equal((await get(tenant.workspaceKey, event.id)).status, 200)
  advance(30 * DAY_MS)
  assert.deepEqual(await walkEvents(annals, tenant.workspaceKey), [])
  assert.equal((await get(tenant.workspaceKey, event.id)).status, 200)
})
