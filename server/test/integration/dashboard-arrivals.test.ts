import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000
/** 48 hours ago, because sessions follow the real time. */
const START_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 48 * HOUR_MS
let nowMs = START_MS
const annals = await startTestApp({ clock: () => nowMs, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

/** Hours at which events arrive: as usual on the first day, with three silent hours on the second. */
const FIRST_DAY = [0, 3, 5, 6, 7, 12]
const SECOND_DAY = [24, 27, 36, 36]

const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
const workspaceId = company.workspace.id
for (const hour of [...FIRST_DAY, ...SECOND_DAY]) {
  nowMs = START_MS + hour * HOUR_MS
  const { status, text } = await annals.call('POST', '/v1/events', {
    key: company.workspaceKey,
    body: { category: 'c', action: 'a' },
  })
  assert.equal(status, 201, text)
}
nowMs = START_MS + 48 * HOUR_MS
const { call } = await signInAs(annals, company, 'VIEWER', [workspaceId])

function at(hour: number): string {
  return new Date(START_MS + hour * HOUR_MS).toISOString()
}

async function arrivalsOf(query: Record<string, string>) {
  return await call('GET', `/dashboard/integrity/arrivals?${new URLSearchParams(query).toString()}`)
}

/** The hours since the start of the range that have events, with their counts. */
function hoursOf(counts: number[]): Record<number, number> {
  return Object.fromEntries(
    counts.flatMap((count, bar) => (count === 0 ? [] : [[bar / (counts.length / 24), count]])),
  )
}

test('counts events by the time they were received, and those of the same time before', async () => {
  const { status, json } = await arrivalsOf({ workspaceId, from: at(24), to: at(48) })
  assert.equal(status, 200)
  assert.deepEqual(hoursOf(json.counts), { 0: 1, 3: 1, 12: 2 })
  assert.deepEqual(hoursOf(json.previousCounts), { 0: 1, 3: 1, 5: 1, 6: 1, 7: 1, 12: 1 })
  assert.deepEqual([json.from, json.to, json.lastBarEnd], [at(24), at(48), at(48)])
  assert.deepEqual(json.sequence, { firstSeq: 1, lastSeq: 10, missing: 0 })
  assert.equal(json.late, 0)
})

test('by default, the range is the last 24 hours', async () => {
  const { json } = await arrivalsOf({ workspaceId })
  assert.deepEqual([json.from, json.to], [at(24), at(48)])
})

test('a range without events has empty bars', async () => {
  const { json } = await arrivalsOf({ workspaceId, from: at(13), to: at(24) })
  assert(json.counts.every((count: number) => count === 0))
})

test('events whose timestamp is more than five minutes away from their receipt are late', async () => {
  const other = await annals.createCompany()
  const minutes = [-6, -5, 0, 5, 6]
  for (const minute of minutes) {
    const timestamp = new Date(nowMs + minute * 60_000).toISOString()
    const { status, text } = await annals.call('POST', '/v1/events', {
      key: other.workspaceKey,
      body: { category: 'c', action: 'a', timestamp },
    })
    assert.equal(status, 201, text)
  }
  const owner = await signInAs(annals, other, 'OWNER')
  const query = new URLSearchParams({ workspaceId: other.workspace.id, to: at(49) })
  const { json } = await owner.call('GET', `/dashboard/integrity/arrivals?${query.toString()}`)
  assert.equal(json.late, 2)
})

test('a missing event is reported, at the end of the chain too', async () => {
  await asOwner(annals, (db) =>
    sql`delete from event where workspace_id = ${workspaceId} and seq in (8, 10)`.execute(db),
  )
  const { json } = await arrivalsOf({ workspaceId, from: at(24), to: at(48) })
  assert.deepEqual(json.sequence, { firstSeq: 1, lastSeq: 10, missing: 2 })
})

test('only a visible workspace and a range of at most 366 days are accepted', async () => {
  const [, staging] = company.workspaces
  assert(staging)
  const other = await annals.createCompany()
  for (const hidden of [staging.id, other.workspace.id]) {
    assert.equal((await arrivalsOf({ workspaceId: hidden })).status, 404)
  }
  for (const [from, to] of [
    ['2025-01-01T00:00:00Z', '2026-11-01T00:00:00Z'],
    ['0000-01-01T00:00:00Z', '9999-12-31T00:00:00Z'],
    [at(2), at(1)],
  ] as const) {
    const { status, json } = await arrivalsOf({ workspaceId, from, to })
    assert.deepEqual([status, json.code], [400, 'invalid_request'])
  }
  const { status } = await arrivalsOf({
    workspaceId,
    from: '0000-01-01T00:00:00Z',
    to: '0000-12-01T00:00:00Z',
  })
  assert.equal(status, 200)
})
