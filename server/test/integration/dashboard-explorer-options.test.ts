import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createWithTwoWorkspaces } from '../harness/dashboard/console.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { readOptions, removeUpTo, sendEvents } from '../harness/dashboard/explorer.ts'
import { startTestApp } from '../harness/app/start-app.ts'

// Without the worker, because the test decides when events are counted.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const BATCH = 500
/** More than are marked as frequent. */
const VALUES = 4_400

test('finds the most frequent of many values, however their counts change', async () => {
  const { member, key, workspaceId } = await createTenant()
  // Most have three events, some have more, the last few the most.
  const events = Array.from({ length: VALUES }, (_, nth) =>
    Array.from({ length: nth % 40 === 0 ? 4 + (nth % 7) : 3 }, () => nth),
  ).flat()
  await sendAll(key, events)
  await assertFirst(member, workspaceId)
  await countAll(workspaceId)
  await assertFirst(member, workspaceId)
  assert((await frequentFrom(workspaceId)) > 2)
  // A value that was not marked moves to the top before it is counted, and stays there.
  await sendAll(key, [
    ...Array.from({ length: 30 }, () => 17),
    ...Array.from({ length: 9 }, () => VALUES),
  ])
  await assertFirst(member, workspaceId)
  await countAll(workspaceId)
  await assertFirst(member, workspaceId)
  // The former top value is archived.
  await removeUpTo(annals, workspaceId, 10_000)
  await assertFirst(member, workspaceId)
})

test('lists unique values in order', async () => {
  const { member, key, workspaceId } = await createTenant()
  await sendAll(
    key,
    Array.from({ length: VALUES }, (_, nth) => nth),
  )
  await countAll(workspaceId)
  assert.equal(await frequentFrom(workspaceId), 2)
  await assertFirst(member, workspaceId)
  await sendAll(key, [4_399, 4, 4, VALUES])
  await assertFirst(member, workspaceId)
  await countAll(workspaceId)
  await assertFirst(member, workspaceId)
})

test('the first time is the earliest timestamp that the member can see', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const first = async (member: Member, suffix = '') =>
    (await member.call('GET', `/dashboard/events/first-time${suffix}`)).json.timestamp
  const owner = await signInAs(annals, company, 'OWNER')
  const viewer = await signInAs(annals, company, 'VIEWER', [production.id])
  const [early, late] = ['2019-01-02T03:04:05.678Z', '2021-01-01T00:00:00.000Z']
  for (const [workspace, timestamp] of [
    [staging, early],
    [production, late],
  ] as const) {
    const body = { category: 'c', action: 'a', timestamp }
    await annals.call('POST', '/v1/events', { key: workspace.workspaceKey, body })
  }
  assert.equal(await first(owner), early)
  assert.equal(await first(viewer), late)
  assert.equal(await first(owner, `?workspaceId=${production.id}`), late)
  const hidden = await viewer.call('GET', `/dashboard/events/first-time?workspaceId=${staging.id}`)
  assert.equal(hidden.status, 404)
  const { member } = await createTenant()
  assert.equal(await first(member), null)
})

test('the context of an event is five events before and after it, as far as they are hot', async () => {
  const { member, key, workspaceId } = await createTenant()
  const company = await annals.createCompany()
  const stranger = await signInAs(annals, company, 'OWNER')
  await sendAll(
    key,
    Array.from({ length: 20 }, (_, nth) => nth),
  )
  const context = async (seq: number) => {
    const path = `/dashboard/events/context?workspaceId=${workspaceId}&seq=${seq}`
    const { json } = await member.call('GET', path)
    return json.events.map((event: { seq: number }) => event.seq)
  }
  assert.deepEqual(await context(10), [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
  assert.deepEqual(await context(1), [1, 2, 3, 4, 5, 6])
  assert.deepEqual(await context(19), [14, 15, 16, 17, 18, 19, 20])
  assert.deepEqual(await context(1_000), [])
  await removeUpTo(annals, workspaceId, 7)
  assert.deepEqual(await context(10), [8, 9, 10, 11, 12, 13, 14, 15])
  const path = `/dashboard/events/context?workspaceId=${workspaceId}&seq=10`
  assert.equal((await stranger.call('GET', path)).status, 404)
  const { json } = await member.call('GET', path.replace('seq=10', 'seq=1e300'))
  assert.equal(json.code, 'invalid_request')
})

async function createTenant() {
  const { workspace, workspaceKey, ...company } = await annals.createCompany()
  const member = await signInAs(annals, { workspace, workspaceKey, ...company }, 'OWNER')
  return { member, key: workspaceKey, workspaceId: workspace.id }
}

async function sendAll(key: string, values: readonly number[]): Promise<void> {
  for (let start = 0; start < values.length; start += BATCH) {
    const events = values.slice(start, start + BATCH).map((nth) => ({
      category: 'c',
      action: 'a',
      resource: { id: nth % 2 === 0 ? `res ${nth}` : `RES ${nth}` },
    }))
    await sendEvents(annals, key, events)
  }
}

/**
 * Counts in long runs, which mark values at their end, and in short ones, which mark while
 * counting.
 */
async function countAll(workspaceId: WorkspaceId): Promise<void> {
  let runMax = 6_000
  while ((await advanceRollup(db, workspaceId, { runMax }))?.isBehind) runMax = 1_000
  assert.equal(await countUnmarked(workspaceId), 0)
}

/** Compared with the event table. */
async function assertFirst(member: Member, workspaceId: WorkspaceId): Promise<void> {
  for (const contains of ['', 'res 1', 'ES 44', '4222', 'nowhere']) {
    for (const limit of [5, 50]) {
      const { status, json, text } = await readOptions(member, {
        field: 'resourceId',
        limit: String(limit),
        ...(contains !== '' && { contains }),
      })
      assert.equal(status, 200, text)
      const { rows } = await sql<{ value: string; count: number }>`
        select resource_id as value, count(*)::int as count from event
         where workspace_id = ${workspaceId} and position(lower(${contains}) in lower(resource_id)) > 0
         group by 1 order by 2 desc, 1 limit ${limit}`.execute(db)
      assert.deepEqual(json.values, rows, `${contains} ${limit}`)
    }
  }
}

async function frequentFrom(workspaceId: WorkspaceId): Promise<number> {
  const { rows } = await sql<{ events: number }>`
    select frequent_from as events from event_field
     where workspace_id = ${workspaceId} and field = 'resourceId'`.execute(db)
  return rows[0]?.events ?? 0
}

/** Values that reach the bound and aren't marked as frequent. Lists rely on there being none. */
async function countUnmarked(workspaceId: WorkspaceId): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count
      from event_value v join event_field f using (workspace_id, field)
     where workspace_id = ${workspaceId} and v.events >= f.frequent_from and not v.is_frequent`.execute(
    db,
  )
  return rows[0]?.count ?? 0
}
