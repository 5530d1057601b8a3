import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { listUnlearned } from '../../src/ledger/event-type/event-type-store.ts'
import { advanceEventTypes } from '../../src/ledger/event-type/event-types.ts'
import { startEventTypeWorker } from '../../src/outlet/event-type/event-type-worker.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database, isOutage } from '../../src/platform/pg/database.ts'
import { migrate } from '../../src/platform/pg/migrate.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import {
  countTypes,
  learnAllEventTypes,
  listedTypes,
  readStored,
  readTypes,
} from '../harness/event/event-types.ts'
import { removeUpTo, sendEvents } from '../harness/dashboard/explorer.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const { connection } = annals.database
const logger = createLogger('silent')

/** Events of five types whose metadata differs. */
const events = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => {
    const nth = from + index
    return {
      category: `c${nth % 2}`,
      action: `a${nth % 5}`,
      ...(nth % 7 > 0 && {
        metadata: {
          amount: nth % 11 === 0 ? String(nth) : nth,
          card: nth % 3 === 0 ? null : { brand: 'visa', ...(nth % 13 === 0 && { digits: [nth] }) },
          [`optional${nth % 4}`]: true,
        },
      }),
    }
  })

async function newWorkspace() {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  return { workspaceId: workspace.id, key }
}

test('counts every event once, with several nodes, writers and nodes that are killed', async () => {
  const { workspaceId, key } = await newWorkspace()
  const BATCHES = 40
  let sent = 0
  const isWriting = () => sent < BATCHES
  const writing = async () => {
    while (isWriting()) {
      sent += 1
      await sendEvents(annals, key, events(25, sent * 25))
    }
  }
  let killed = 0
  const counting = async () => {
    await using node = new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: 2,
      logger,
    })
    for (;;) {
      try {
        const { outcome } = await advanceEventTypes(node.db, workspaceId, { eventsMax: 17 })
        if (outcome === 'done' && !isWriting()) return
      } catch (error) {
        if (!isOutage(error)) throw error
        killed += 1
      }
    }
  }
  const killing = async () => {
    while (isWriting()) {
      await query(
        connection,
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and state <> 'idle' and query like '%event_type%'
            and pid <> pg_backend_pid()`,
      )
    }
  }
  await Promise.all([writing(), writing(), counting(), counting(), counting(), killing()])
  assert(killed > 0)
  await learnAllEventTypes(db, workspaceId)
  const stored = await readStored(db, workspaceId)
  assert.equal(stored.length, BATCHES * 25)
  const { data, ...rest } = await readTypes(annals, { key, workspaceId })
  assert.deepEqual(listedTypes(data), countTypes(stored))
  assert.deepEqual(rest, { nextCursor: null, truncated: false, fromSeq: 1, upToSeq: stored.length })
})

test('a worker learns from all workspaces on its own', async () => {
  const { workspaces } = await annals.createCompany({ workspaces: ['First', 'Second'] })
  for (const { workspaceKey } of workspaces) await sendEvents(annals, workspaceKey, events(30))
  await using worker = startEventTypeWorker({ db, logger })
  await worker.runNow()
  for (const { id: workspaceId, workspaceKey: key } of workspaces) {
    const { data, upToSeq } = await readTypes(annals, { key, workspaceId })
    assert.equal(upToSeq, 30)
    assert.deepEqual(listedTypes(data), countTypes(await readStored(db, workspaceId)))
  }
})

test('a workspace that cannot be counted does not hold up the others', async () => {
  const { workspaces } = await annals.createCompany({ workspaces: ['Broken', 'Sound'] })
  const [broken, sound] = workspaces
  assert(broken && sound)
  for (const { workspaceKey } of workspaces) await sendEvents(annals, workspaceKey, events(5))
  await query(
    connection,
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'damaged'; end $$;
     create trigger refuse before insert on event_type for each row
       when (new.workspace_id = '${broken.id}') execute function refuse()`,
  )
  try {
    await using worker = startEventTypeWorker({ db, logger })
    await worker.runNow()
    const read = ({ id: workspaceId, workspaceKey: key }: typeof sound) =>
      readTypes(annals, { key, workspaceId })
    assert.deepEqual([(await read(broken)).upToSeq, (await read(sound)).upToSeq], [null, 5])
  } finally {
    await query(connection, 'drop trigger refuse on event_type; drop function refuse()')
  }
  await learnAllEventTypes(db, broken.id)
})

test('companies take turns, however many workspaces they have', async () => {
  const many = await annals.createCompany({ workspaces: ['First', 'Second', 'Third'] })
  const few = await annals.createCompany()
  for (const { workspaceKey } of [...many.workspaces, few]) {
    await sendEvents(annals, workspaceKey, events(5))
  }
  const served: string[] = []
  for (let round = 0; round < 3; round += 1) {
    const listed = await listUnlearned(db, { eventsMin: 1, waitMs: 0, limit: 1_000 })
    const ours = listed.filter(({ companyId }) =>
      [many.company.id, few.company.id].includes(companyId),
    )
    for (const { workspaceId } of ours) await learnAllEventTypes(db, workspaceId)
    const names = ours.map(({ companyId }) => (companyId === few.company.id ? 'few' : 'many'))
    served.push(names.toSorted().join())
  }
  assert.deepEqual(served, ['few,many', 'many', 'many'])
})

test('events that are archived before a worker has seen them are counted', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(60))
  await advanceEventTypes(db, workspaceId, { eventsMax: 20 })
  const stored = await readStored(db, workspaceId)
  await archiveAll(annals)
  assert.deepEqual(await readStored(db, workspaceId), [])
  await sendEvents(annals, key, events(40, 60))
  await learnAllEventTypes(db, workspaceId)
  stored.push(...(await readStored(db, workspaceId)))
  const { data, fromSeq, upToSeq } = await readTypes(annals, { key, workspaceId })
  assert.deepEqual(listedTypes(data), countTypes(stored))
  assert.deepEqual([fromSeq, upToSeq], [1, 100])
})

test('events that were archived before types were learned are left out, and the response says so', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(50))
  await removeUpTo(annals, workspaceId, 20)
  await learnAllEventTypes(db, workspaceId)
  const { data, fromSeq, upToSeq } = await readTypes(annals, { key, workspaceId })
  assert.deepEqual([fromSeq, upToSeq], [21, 50])
  assert.deepEqual(listedTypes(data), countTypes(await readStored(db, workspaceId)))
})

test('an upgrade counts the events in the table, and flags only types that appear later as new', async () => {
  const hot = await newWorkspace()
  const archived = await newWorkspace()
  for (const { key, workspaceId } of [hot, archived]) {
    await sendEvents(annals, key, events(50))
    await removeUpTo(annals, workspaceId, workspaceId === hot.workspaceId ? 20 : 50)
  }
  await query(
    connection,
    `drop table event_type_watermark, event_type, event_type_key;
     delete from schema_migration where name = 'event_type'`,
  )
  assert.deepEqual(await migrate({ connection, logger }), { applied: 1 })
  const later = await newWorkspace()
  const read = async ({ key, workspaceId }: typeof hot) => {
    await sendEvents(annals, key, [...events(5), { category: 'c0', action: 'later' }])
    await learnAllEventTypes(db, workspaceId)
    const { data, fromSeq, upToSeq } = await readTypes(annals, { key, workspaceId })
    assert.deepEqual(listedTypes(data), countTypes(await readStored(db, workspaceId)))
    const { data: flagged } = await readTypes(annals, { key, workspaceId }, { flag: 'NEW' })
    const isNew = ({ flags }: { flags: string[] }) => flags.includes('NEW')
    assert.deepEqual(flagged, data.filter(isNew))
    return { fromSeq, upToSeq, flagged: flagged.map(({ action }: { action: string }) => action) }
  }
  const all = ['a0', 'a2', 'a4', 'later', 'a1', 'a3']
  assert.deepEqual(await read(hot), { fromSeq: 21, upToSeq: 56, flagged: ['later'] })
  assert.deepEqual(await read(archived), { fromSeq: 51, upToSeq: 56, flagged: all })
  assert.deepEqual(await read(later), { fromSeq: 1, upToSeq: 6, flagged: all })
})

test('events that were deleted without being counted are reported once', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(10))
  await learnAllEventTypes(db, workspaceId)
  await sendEvents(annals, key, events(10))
  await removeUpTo(annals, workspaceId, 14)
  assert.deepEqual(await advanceEventTypes(db, workspaceId), { outcome: 'done', missed: 4 })
  assert.deepEqual(await advanceEventTypes(db, workspaceId), { outcome: 'done', missed: 0 })
})

test('lists at most 1,000 types and 200 keys per type, and says that it left some out', async () => {
  const { workspaceId, key } = await newWorkspace()
  const wide = Object.fromEntries(Array.from({ length: 250 }, (_, nth) => [`k${nth}`, nth]))
  await sendEvents(annals, key, [
    { category: 'wide', action: 'keys', metadata: wide },
    { category: 'wide', action: 'long', metadata: { ['k'.repeat(300)]: 1, short: 1 } },
  ])
  const many = Array.from({ length: 1_010 }, (_, nth) => ({ category: 'many', action: `a${nth}` }))
  for (let from = 0; from < many.length; from += 500) {
    await sendEvents(annals, key, many.slice(from, from + 500))
  }
  // A known type still counts when no new one fits.
  await sendEvents(annals, key, [{ category: 'wide', action: 'keys', metadata: wide }])
  await learnAllEventTypes(db, workspaceId)
  const { data, truncated } = await readTypes(annals, { key, workspaceId }, { limit: '100' })
  assert.equal(data.length, 1_000)
  assert.equal(truncated, true)
  const [keys, long] = data.slice(-2)
  assert.deepEqual([keys.count, keys.metadataKeys.length, keys.truncated], [2, 200, true])
  assert.deepEqual(
    long.metadataKeys.map(({ path }: { path: string[] }) => path),
    [['short']],
  )
  assert.equal(long.truncated, true)
  const names = data.map(({ category, action }: Record<string, string>) => `${category}/${action}`)
  assert.deepEqual(names, names.toSorted())
})

test('hostile metadata is learned like any other, within the limits', async () => {
  const { workspaceId, key } = await newWorkspace()
  const text = (metadata: string) => `{"category":"hostile","action":"keys","metadata":${metadata}}`
  const keys = Array.from({ length: 10_000 }, (_, nth) => `"k${nth}":{"a":[{}]}`).join()
  const bodies = [
    '{"__proto__":{"constructor":1},"constructor":"x","toString":null,"hasOwnProperty":[]}',
    `{"${'\\n'.repeat(100_000)}":1}`,
    `${'{"a":'.repeat(30)}1${'}'.repeat(30)}`,
    `{${keys}}`,
  ]
  for (const body of bodies) {
    const { status, text: response } = await annals.call('POST', '/v1/events', {
      key,
      text: text(body),
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(status, 201, response)
  }
  await learnAllEventTypes(db, workspaceId)
  const { data } = await readTypes(annals, { key, workspaceId })
  assert.equal(data.length, 1)
  const [{ count, truncated, metadataKeys }] = data
  assert.deepEqual([count, truncated, metadataKeys.length], [4, true, 200])
  const typesOf = (...path: string[]) =>
    metadataKeys.find((found: { path: string[] }) => String(found.path) === String(path))?.types
  assert.deepEqual(typesOf('__proto__'), ['object'])
  assert.deepEqual(typesOf('__proto__', 'constructor'), ['number'])
  assert.deepEqual(typesOf('constructor'), ['string'])
  assert.deepEqual(typesOf('toString'), ['null'])
  assert.deepEqual(typesOf('hasOwnProperty'), ['array'])
  assert.deepEqual(typesOf('a', 'a'), ['object'])
})

test('a run that touches many keys ends early and the next one continues', async () => {
  const { workspaceId, key } = await newWorkspace()
  const wide = Object.fromEntries(Array.from({ length: 200 }, (_, nth) => [`k${nth}`, nth]))
  const all = Array.from({ length: 120 }, (_, nth) => ({
    category: 'c',
    action: `a${nth}`,
    metadata: wide,
  }))
  const advanceOnce = async () => {
    assert.equal((await advanceEventTypes(db, workspaceId)).outcome, 'more')
    const { rows } = await sql<{ seen: number }>`
      select seen_seq as seen from event_type_watermark where workspace_id = ${workspaceId}`.execute(
      db,
    )
    return rows[0]?.seen
  }
  await sendEvents(annals, key, all)
  assert.equal(await advanceOnce(), 25, 'new keys')
  await learnAllEventTypes(db, workspaceId)
  await sendEvents(annals, key, all)
  assert.equal(await advanceOnce(), 145, 'stored keys')
  await learnAllEventTypes(db, workspaceId)
  const { data } = await readTypes(annals, { key, workspaceId }, { limit: '100' })
  assert.deepEqual(listedTypes(data), countTypes(await readStored(db, workspaceId)))
})

test('a page ends early when its types have many keys, and the next one continues', async () => {
  const { workspaceId, key } = await newWorkspace()
  const wide = (value: unknown) =>
    Object.fromEntries(Array.from({ length: 200 }, (_, nth) => [`k${nth}`, value]))
  const all = Array.from({ length: 30 }, (_, nth) => ({ category: 'c', action: `a${nth}` }))
  for (const value of [1, 'text']) {
    const sent = all.map((type) => ({ ...type, metadata: wide(value) }))
    await sendEvents(annals, key, sent)
  }
  await learnAllEventTypes(db, workspaceId)
  const path = `/v1/workspaces/${workspaceId}/event-types?limit=100`
  const { json } = await annals.call('GET', path, { key })
  assert.equal(json.data.length, 25)
  const { data } = await readTypes(annals, { key, workspaceId }, { limit: '100' })
  assert.deepEqual(listedTypes(data), countTypes(await readStored(db, workspaceId)))
})

test('a viewer reads the types of their workspaces only', async () => {
  const company = await annals.createCompany({ workspaces: ['Own', 'Other'] })
  const [own, other] = company.workspaces
  assert(own && other)
  for (const { id, workspaceKey } of company.workspaces) {
    await sendEvents(annals, workspaceKey, [{ category: 'c', action: 'a', metadata: { k: 1 } }])
    await learnAllEventTypes(db, id)
  }
  const stranger = await annals.createCompany()
  const viewer = await signInAs(annals, company, 'VIEWER', [own.id])
  const read = (id: string) => viewer.call('GET', `/dashboard/workspaces/${id}/event-types`)
  const { status, json } = await read(own.id)
  assert.equal(status, 200)
  const { json: same } = await annals.call('GET', `/v1/workspaces/${own.id}/event-types`, {
    key: own.workspaceKey,
  })
  assert.deepEqual(json, same)
  const unknown = await read(newId())
  const comparable = ({ status: code, text, json: { traceId } }: TestResponse) => [
    code,
    text.replaceAll(traceId, 'trace'),
  ]
  assert.equal(unknown.status, 404)
  for (const id of [other.id, stranger.workspace.id, 'no-id']) {
    assert.deepEqual(comparable(await read(id)), comparable(unknown), id)
  }
})
