import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { advanceRollup, forgetRun, moveRollupFloor } from '../../src/ledger/rollup/rollup.ts'
import { findHotFloor } from '../../src/ledger/hot/hot-floor.ts'
import { findTextMatches } from '../../src/outlet/explorer/filter-option/value-store.ts'
import { startRollupWorker } from '../../src/outlet/explorer/rollup-worker.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { readOptions, removeUpTo, sendEvents, walkExplorer } from '../harness/dashboard/explorer.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const logger = createLogger('silent')

const events = (count: number, more: (nth: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, nth) => ({
    category: 'c',
    action: `a${nth % 3}`,
    actor: { id: `actor ${nth % 4}` },
    ...more(nth),
  }))

async function readHead(workspaceId: WorkspaceId) {
  const { rows } = await sql<{ floor: number; seen: number }>`
    select floor_seq as floor, seen_seq as seen from rollup_head
     where workspace_id = ${workspaceId}`.execute(db)
  return rows[0]
}

/** The rollup rows of a workspace, and the same computed from its events. */
async function assertExact(workspaceId: WorkspaceId): Promise<void> {
  const { rows: counted } = await sql`
    select grain_s, bucket, category, action, events from event_rollup
     where workspace_id = ${workspaceId} order by 1, 2, 3, 4`.execute(db)
  const { rows: real } = await sql`
    select g.grain_s, date_bin(g.grain_s * interval '1 second', e.ts, 'epoch') as bucket,
           e.category, e.action, count(*) as events
      from event e
      join rollup_head h on h.workspace_id = e.workspace_id and e.seq > h.floor_seq and e.seq <= h.seen_seq
     cross join (values (900), (21600)) as g (grain_s)
     where e.workspace_id = ${workspaceId} group by 1, 2, 3, 4 order by 1, 2, 3, 4`.execute(db)
  assert.deepEqual(counted, real)
  const { rows: values } = await sql`
    select value, events from event_value
     where workspace_id = ${workspaceId} and field = 'actorId' order by value`.execute(db)
  const { rows: actors } = await sql`
    select e.actor_id as value, count(*) as events
      from event e
      join rollup_head h on h.workspace_id = e.workspace_id and e.seq > h.floor_seq and e.seq <= h.seen_seq
     where e.workspace_id = ${workspaceId} group by 1 order by 1`.execute(db)
  assert.deepEqual(values, actors)
  const { rows: counts } = await sql`
    select f.field from event_field f
     where f.workspace_id = ${workspaceId} and f.value_count <> (
       select count(*) from event_value v
        where v.workspace_id = f.workspace_id and v.field = f.field)`.execute(db)
  assert.deepEqual(counts, [])
  const { rows: missing } = await sql`
    select field, value from event_value where workspace_id = ${workspaceId}
    except
    select field, item from event_value_block cross join lateral unnest(items) as item
     where workspace_id = ${workspaceId}`.execute(db)
  assert.deepEqual(missing, [])
}

test('nodes that count at the same time count each event once', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(200))
  const counting = async () => {
    // Null if another node is counting it.
    while ((await advanceRollup(db, id, { runMax: 7 }))?.isBehind !== false);
  }
  await Promise.all([counting(), counting(), counting(), counting()])
  await assertExact(id)
  assert.deepEqual(await readHead(id), { floor: 0, seen: 200 })
})

test('a worker counts new events on its own', async () => {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  for (const { workspaceKey } of tenant.workspaces) {
    await sendEvents(annals, workspaceKey, events(30))
  }
  await using worker = startRollupWorker({ db, clock, logger })
  await worker.runNow()
  for (const { id } of tenant.workspaces) {
    assert.deepEqual(await readHead(id), { floor: 0, seen: 30 })
    await assertExact(id)
  }
})

test('a workspace that cannot be counted does not hold up the others', async () => {
  const tenant = await annals.createCompany({ workspaces: ['Broken', 'Other'] })
  const [broken, other] = tenant.workspaces
  assert(broken && other)
  // The one with the most uncounted events is counted first.
  await sendEvents(annals, broken.workspaceKey, events(40))
  await sendEvents(annals, other.workspaceKey, events(30))
  const { connection } = annals.database
  await query(
    connection,
    `create function refuse() returns trigger language plpgsql as $$
     begin raise exception 'canceling statement due to statement timeout' using errcode = '57014'; end $$;
     create trigger refuse before insert on event_rollup for each row
       when (new.workspace_id = '${broken.id}') execute function refuse()`,
  )
  const lines: string[] = []
  const failures = pino({ level: 'error' }, { write: (line) => void lines.push(line) })
  await using worker = startRollupWorker({ db, clock, logger: failures })
  await worker.runNow()
  assert.deepEqual(await readHead(other.id), { floor: 0, seen: 30 })
  await assertExact(other.id)
  assert.deepEqual(
    lines.map((line) => [JSON.parse(line).event, JSON.parse(line).workspaceId]),
    [['rollup.failed', broken.id]],
  )
  await query(connection, 'drop function refuse cascade')
})

test('removed events are no longer counted, and their usage stays', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(40))
  await advanceRollup(db, id, { runMax: 10 })
  for (const toSeq of [4, 4, 9, 25]) {
    await removeUpTo(annals, id, toSeq)
    await assertExact(id)
  }
  assert.deepEqual(await readHead(id), { floor: 25, seen: 25 })
  await advanceRollup(db, id, { runMax: 1_000 })
  await removeUpTo(annals, id, 40)
  await assertExact(id)
  const { rows } = await sql`
    select events, bytes > 0 as "hasBytes" from event_day where workspace_id = ${id}`.execute(db)
  assert.deepEqual(rows, [{ events: 40, hasBytes: true }])
})

test('values that arrive one by one are searched together', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  const member = await signInAs(annals, tenant, 'VIEWER', [id])
  await sendEvents(
    annals,
    tenant.workspaceKey,
    events(130, (nth) => ({ actor: { id: `person ${nth}` } })),
  )
  for (let times = 0; times < 130; times += 1) await advanceRollup(db, id, { runMax: 1 })
  await assertExact(id)
  const { rows } = await sql<{ blocks: number }>`
    select count(*) as blocks from event_value_block
     where workspace_id = ${id} and field = 'actorId'`.execute(db)
  assert((rows[0]?.blocks ?? 0) <= 50, String(rows[0]?.blocks))
  assert.equal((await walkExplorer(member, { text: 'PERSON 12' })).length, 11)
})

test('a value that disappears and returns is one value with all of its events', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  const member = await signInAs(annals, tenant, 'VIEWER', [id])
  const send = (count: number, actor: string) =>
    sendEvents(
      annals,
      tenant.workspaceKey,
      events(count, () => ({ actor: { id: actor } })),
    )
  await send(30, 'needle')
  await advanceRollup(db, id, { runMax: 1_000 })
  await removeUpTo(annals, id, 30)
  await send(60, 'needle')
  // More than the newest events that a page scans itself.
  for (const actor of ['hay', 'straw']) await send(300, actor)
  await advanceRollup(db, id, { runMax: 1_000 })
  const { matches } = await findTextMatches(db, { workspaceId: id, text: 'needle', limit: 10 })
  assert.deepEqual(matches, [{ field: 'actorId', value: 'needle', events: 60 }])
  assert.equal((await walkExplorer(member, { text: 'needle' })).length, 60)
})

test('rebuilds blocks of which most is gone', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(20))
  await advanceRollup(db, id, { runMax: 10 })
  await sql`
    insert into event_value_block (workspace_id, field, size, folded, items)
    select ${id}, 'actorId', 5000, '', array_fill(''::text, array[5000])`.execute(db)
  await advanceRollup(db, id, { runMax: 10 })
  const { rows } = await sql`
    select sum(size)::bigint as items from event_value_block
     where workspace_id = ${id} and field = 'actorId'`.execute(db)
  assert.deepEqual(rows, [{ items: 4 }])
  await assertExact(id)
})

test('a removal that is rolled back leaves the counts unchanged', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(10))
  await advanceRollup(db, id, { runMax: 1_000 })
  await assert.rejects(
    db.transaction().execute(async (trx) => {
      await forgetRun(trx, { workspaceId: id, toSeq: 5 })
      throw new Error('rolled back')
    }),
    /rolled back/,
  )
  assert.deepEqual(await readHead(id), { floor: 0, seen: 10 })
  await assertExact(id)
})

test('drops events past their hot time, and counts them again with a larger plan', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(20))
  advance(8 * DAY_MS)
  await sendEvents(annals, tenant.workspaceKey, events(5))
  await advanceRollup(db, id, { runMax: 1_000 })
  const move = async (days: number) => {
    const options = { hotSinceMs: clock() - days * DAY_MS, runMax: 8 }
    const { outcome, events: moved } = await moveRollupFloor(db, id, options)
    return `${outcome} ${moved}`
  }
  const moves = ['more 8', 'more 8', 'done 4']
  assert.deepEqual([await move(7), await move(7), await move(7)], moves)
  assert.deepEqual(await readHead(id), { floor: 20, seen: 25 })
  await assertExact(id)
  assert.deepEqual([await move(30), await move(30), await move(30)], moves)
  assert.deepEqual(await readHead(id), { floor: 0, seen: 25 })
  await assertExact(id)
})

test('rebuilds the counts if a program that does not count removed events', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(20))
  await advanceRollup(db, id, { runMax: 1_000 })
  await query(
    annals.database.connection,
    `delete from event where workspace_id = '${id}' and seq <= 6`,
  )
  const options = { hotSinceMs: clock() - 365 * DAY_MS, runMax: 1_000 }
  assert.equal((await moveRollupFloor(db, id, options)).outcome, 'remade')
  await advanceRollup(db, id, { runMax: 1_000 })
  await assertExact(id)
  const { rows } = await sql`select events from event_day where workspace_id = ${id}`.execute(db)
  assert.deepEqual(rows, [{ events: 20 }])
  assert.equal((await moveRollupFloor(db, id, options)).outcome, 'done')
})

test('counting starts with the events in the table', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await sendEvents(annals, tenant.workspaceKey, events(20))
  await query(
    annals.database.connection,
    `delete from event where workspace_id = '${id}' and seq <= 6`,
  )
  const hotSinceMs = clock() - 365 * DAY_MS
  assert.equal((await findHotFloor(db, id, { hotSinceMs, afterSeq: null })).floorSeq, 6)
  assert.deepEqual(await advanceRollup(db, id, { runMax: 100 }), { events: 14, isBehind: false })
  await assertExact(id)
  const member = await signInAs(annals, tenant, 'OWNER')
  await db
    .updateTable('user_session')
    .set({ seen_at: new Date(clock()), expires_at: new Date(clock() + DAY_MS) })
    .execute()
  const { json } = await readOptions(member, { field: 'category' })
  assert.deepEqual(json.values, [{ value: 'c', count: 14 }])
})
