import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { readHead } from '../../src/ledger/event-store.ts'
import { type Exclusion, orderExclusions } from '../../src/ledger/filter/exclusion.ts'
import { findHotFloor } from '../../src/ledger/hot/hot-floor.ts'
import { advanceRollup, moveRollupFloor } from '../../src/ledger/rollup/rollup.ts'
import {
  COUNT_BY,
  countByMatches,
  type EventCount,
} from '../../src/outlet/explorer/histogram/event-count-store.ts'
import { readHistogram as countOverTime } from '../../src/outlet/explorer/histogram/histogram.ts'
import { readsFrom } from '../../src/ledger/replica/chain-reads.ts'
import { Searches } from '../../src/outlet/explorer/searches.ts'
import { countByRollup } from '../../src/outlet/explorer/histogram/rollup-count-store.ts'
import { planTextSearch } from '../../src/outlet/explorer/search-text.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import { insertProject } from '../../src/tenancy/workspace/workspace-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import {
  type Parameters,
  readHistogram,
  readOptions,
  removeUpTo,
  sendEvents,
  walkExplorer,
} from '../harness/dashboard/explorer.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const { clock, advance } = manualClock()
// Without the worker, because the test decides when events are counted.
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const PROJECT = newId<'project'>()

/** Small domains whose values contain each other, including characters of SQL patterns. */
const DOMAIN = {
  category: ['billing', 'Auth', 'bill%', 'ÄUTH'],
  action: ['billing.paid', 'login', 'LOGIN', 'a_b'],
  actorId: ['ada', 'ADA@x', 'bill', ''],
  actorEmail: ['ada@example.com', 'Bill@Example.com'],
  resourceType: ['invoice', 'äuth'],
  resourceId: ['1', '100%', 'login'],
} as const

type Facts = { [Name in keyof typeof DOMAIN]?: string } & {
  minutesAgo: number
  hasProject: boolean
  workspace: number
}

const anyFacts: fc.Arbitrary<Facts> = fc.record(
  {
    // Includes late events, events at and next to quarter-hour boundaries, and a few in the future.
    minutesAgo: fc.oneof(
      fc.integer({ min: -600, max: 3_000 }),
      fc.integer({ min: 0, max: 200 }).map((quarters) => quarters * 15),
      fc.integer({ min: 0, max: 400 * 1_440 }),
    ),
    hasProject: fc.boolean(),
    workspace: fc.integer({ min: 0, max: 1 }),
    category: fc.constantFrom(...DOMAIN.category),
    action: fc.constantFrom(...DOMAIN.action),
    actorId: fc.constantFrom(...DOMAIN.actorId),
    actorEmail: fc.constantFrom(...DOMAIN.actorEmail),
    resourceType: fc.constantFrom(...DOMAIN.resourceType),
    resourceId: fc.constantFrom(...DOMAIN.resourceId),
  },
  { requiredKeys: ['minutesAgo', 'hasProject', 'workspace', 'category', 'action'] },
)

const anyFilter = fc.record(
  {
    category: fc.constantFrom(...DOMAIN.category),
    action: fc.constantFrom(...DOMAIN.action),
    projectId: fc.constant(PROJECT),
    actorId: fc.constantFrom(...DOMAIN.actorId),
    actorEmail: fc.constantFrom(...DOMAIN.actorEmail),
    resourceType: fc.constantFrom(...DOMAIN.resourceType),
    resourceId: fc.constantFrom(...DOMAIN.resourceId),
    text: fc.constantFrom('bill', 'LOGIN', '%', '_', 'Ä', 'ä', 'ada', '.', 'example', 'nowhere'),
  },
  { requiredKeys: [] },
)

/** Few filters at a time, so that something matches. */
const fewFilters = fc
  .tuple(
    anyFilter,
    fc.uniqueArray(
      fc.constantFrom(
        'category',
        'action',
        'actorId',
        'text',
        'projectId',
        'resourceType',
        'resourceId',
        'actorEmail',
      ),
      { maxLength: 2 },
    ),
  )
  .map(([filter, names]) =>
    Object.fromEntries(Object.entries(filter).filter(([name]) => names.some((n) => n === name))),
  )

/** Often none, often on fields in the rollup, and sometimes on other fields. */
const fewExclusions = fc.oneof(
  fc.constant([]),
  fc.uniqueArray(exclusionOf('category', 'action'), { minLength: 1, maxLength: 3 }),
  fc.uniqueArray(
    exclusionOf('category', 'actorId', 'actorEmail', 'resourceType', 'resourceId', 'projectId'),
    { minLength: 1, maxLength: 3 },
  ),
)

function exclusionOf(...fields: readonly (keyof typeof DOMAIN | 'projectId')[]) {
  return fc.oneof(
    ...fields.map((field) => {
      const values: readonly string[] = field === 'projectId' ? [PROJECT] : DOMAIN[field]
      return fc.constantFrom(...values).map((value) => `${field}:${value}`)
    }),
  )
}

const anyRange = fc
  .tuple(
    fc.integer({ min: -700, max: 4_000 }),
    fc.oneof(fc.integer({ min: 1, max: 4_000 }), fc.integer({ min: 1, max: 400 * 1_440 })),
  )
  .map(([endMinutesAgo, minutes]) => ({ endMinutesAgo, minutes }))

/** Steps between events: count some, remove some, or let time pass. */
const anyStep = fc.oneof(
  fc.record({ kind: fc.constant('send' as const), facts: fc.array(anyFacts, { maxLength: 12 }) }),
  fc.record({
    kind: fc.constant('count' as const),
    workspace: fc.integer({ min: 0, max: 1 }),
    runMax: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({
    kind: fc.constant('remove' as const),
    workspace: fc.integer({ min: 0, max: 1 }),
    events: fc.integer({ min: 1, max: 5 }),
  }),
  fc.record({
    kind: fc.constant('age' as const),
    days: fc.constantFrom<number>(1, 200, 364),
    movesFloor: fc.boolean(),
  }),
)

test('counts match the events on the pages, whatever was counted, removed or late', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, { minLength: 3, maxLength: 9 }),
      fc.array(
        fc.tuple(
          fewFilters,
          fewExclusions,
          anyRange,
          fc.constantFrom(...COUNT_BY),
          fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kolkata', 'America/New_York'),
        ),
        { minLength: 4, maxLength: 4 },
      ),
      async (steps, questions) => {
        const { member, workspaceIds } = await live(steps)
        for (const [filter, not, { endMinutesAgo, minutes }, by, timeZone] of questions) {
          const toMs = clock() - endMinutesAgo * MINUTE_MS
          const range = {
            from: new Date(toMs - minutes * MINUTE_MS).toISOString(),
            to: new Date(toMs).toISOString(),
          }
          await assertHistogram(member, { ...filter, not, ...range, timeZone }, by)
          await assertHistogram(
            member,
            { ...filter, not, ...range, workspaceId: workspaceIds[0] ?? '' },
            by,
          )
          await assertOptions(member, { ...range, not })
          await assertOptions(member, { ...range, category: 'billing', not })
        }
        await assertOptions(member, {})
      },
    ),
    { numRuns: 8 },
  )
})

test('a histogram of too many events to group is not grouped, and counts all of them', async () => {
  const company = await annals.createCompany()
  const actors = ['ada', 'ada', 'bo', null]
  await sendEvents(
    annals,
    company.workspaceKey,
    actors.map((id) => ({ category: 'c', action: 'a', ...(id !== null && { actor: { id } }) })),
  )
  const scope = {
    companyId: company.company.id,
    workspaceIds: [company.workspace.id],
    hotSinceMs: 0,
  }
  const range = { fromMs: clock() - HOUR_MS, toMs: clock() + HOUR_MS }
  const query = { range, filter: NO_FILTER, by: 'actorId', offsetOf: () => 0 } as const
  const read = async (groupedEventsMax: number) => {
    const searches = new Searches(readsFrom(annals.app.database))
    const { total, isGrouped, series } = await countOverTime(searches, scope, {
      ...query,
      groupedEventsMax,
    })
    return { total, isGrouped, series: series.map((one) => [one.value, one.total]) }
  }
  const grouped = [
    ['ada', 2],
    ['bo', 1],
    [null, 1],
  ]
  assert.deepEqual(await read(4), { total: 4, isGrouped: true, series: grouped })
  assert.deepEqual(await read(3), { total: 4, isGrouped: false, series: [[null, 4]] })
})

test('an event is not counted once it is no longer hot', async () => {
  const facts = (workspace: number, minutesAgo: number) => ({
    minutesAgo,
    workspace,
    hasProject: minutesAgo % 2 === 0,
    category: minutesAgo % 3 === 0 ? 'billing' : 'Auth',
    action: 'login',
    actorId: `actor ${Math.abs(minutesAgo % 4)}`,
  })
  const many = (workspace: number) =>
    Array.from({ length: 15 }, (_, nth) => facts(workspace, nth * 37 - 300))
  const { member, workspaceIds } = await live([
    { kind: 'send', facts: [...many(0), ...many(1)] },
    { kind: 'count', workspace: 0, runMax: 100 },
    { kind: 'count', workspace: 1, runMax: 4 },
    { kind: 'age', days: 2 / 24, movesFloor: false },
    { kind: 'send', facts: [...many(0), ...many(1)] },
    { kind: 'count', workspace: 0, runMax: 9 },
    // The first half left its hot period an hour ago, and its timestamps overlap with those of the
    // second.
    { kind: 'age', days: 365 - 1 / 24, movesFloor: false },
  ])
  const assertAllRanges = async () => {
    for (const days of [364.9, 365, 500]) {
      const range = {
        from: new Date(clock() - days * DAY_MS).toISOString(),
        to: new Date(clock()).toISOString(),
      }
      await assertHistogram(member, range, 'category')
      await assertHistogram(member, { ...range, category: 'billing' }, 'action')
      await assertHistogram(member, { ...range, text: 'actor 1' }, 'none')
      const not = ['actorId:actor 1', 'actorId:nobody', `projectId:${PROJECT}`, 'category:other']
      await assertHistogram(member, { ...range, not }, 'category')
      await assertHistogram(member, { ...range, not, category: 'Auth' }, 'none')
      await assertOptions(member, range)
    }
    await assertOptions(member, {})
    assert.equal((await walkExplorer(member)).length, 30)
  }
  await assertAllRanges()
  for (const workspaceId of workspaceIds) {
    await moveRollupFloor(db, workspaceId, { hotSinceMs: clock() - 365 * DAY_MS, runMax: 7 })
  }
  await assertAllRanges()
})

test('an event that contains a text several times is counted once', async () => {
  const owners = [
    { category: 'billing', actorId: 'bill', actorEmail: 'Bill@Example.com' },
    { category: 'Auth', actorId: 'bill', actorEmail: 'Bill@Example.com' },
    { category: 'Auth', actorEmail: 'Bill@Example.com', resourceId: 'bill' },
    { category: 'bill%', resourceId: 'login' },
    { category: 'Auth', actorId: 'ada' },
  ]
  const facts = Array.from({ length: 60 }, (_, nth) => ({
    minutesAgo: nth * 61,
    workspace: nth % 2,
    hasProject: false,
    action: nth % 3 === 0 ? 'billing.paid' : 'login',
    category: '',
    ...owners[nth % owners.length],
  }))
  const { member, workspaceIds } = await live([
    { kind: 'send', facts: facts.slice(0, 48) },
    { kind: 'count', workspace: 0, runMax: 100 },
    { kind: 'count', workspace: 1, runMax: 15 },
    { kind: 'send', facts: facts.slice(48) },
  ])
  const to = new Date(clock()).toISOString()
  for (const days of [1, 2, 3, 30]) {
    const range = { from: new Date(clock() - days * DAY_MS).toISOString(), to }
    for (const by of ['none', 'category', 'action']) {
      await assertHistogram(member, { ...range, text: 'BILL' }, by)
      await assertHistogram(member, { ...range, text: 'bill', action: 'login' }, by)
      await assertHistogram(member, { ...range, text: 'bill', category: 'Auth' }, by)
    }
  }
  // Text matches with many events are counted by the rollup. Here both ways count the same few.
  for (const workspaceId of workspaceIds) {
    const { floorSeq, fromId } = await findHotFloor(db, workspaceId, {
      hotSinceMs: 0,
      afterSeq: null,
    })
    assert(fromId !== null)
    const range = { fromMs: clock() - 3 * DAY_MS, toMs: clock() }
    const hot = { floorSeq, fromId }
    const firstMs = range.fromMs - (range.fromMs % HOUR_MS)
    const bars = Array.from({ length: 73 }, (_, hour) => firstMs + hour * HOUR_MS)
    const limits = { bars, values: null, limit: 1_000 }
    for (const excluded of [null, orderExclusions(MIXED_EXCLUSIONS)]) {
      const text = { text: 'bill', textIn: 'fields' as const }
      const filter = { ...NO_FILTER, ...range, ...text, excluded }
      const { matches, seenSeq } = await planTextSearch(db, { workspaceId, filter, eventsMax: 100 })
      assert(matches)
      const options = { workspaceId, hot, range, filter, by: 'action' as const, ...limits }
      const gathered = await countByMatches(db, options, { matches, seenSeq })
      assert(gathered.length > (excluded ? 3 : 10))
      assert.deepEqual(inOrder(await countByRollup(db, options, matches)), inOrder(gathered))
    }
  }
})

/** Some values contain the text themselves, some don't, and some events have two of them. */
const MIXED_EXCLUSIONS: Exclusion[] = [
  { field: 'resourceId', value: 'bill' },
  { field: 'resourceId', value: 'login' },
  { field: 'actorId', value: 'ada' },
  { field: 'category', value: 'billing' },
]

function inOrder(counts: readonly EventCount[]): string[] {
  return counts.map((count) => JSON.stringify(count)).toSorted()
}

async function live(
  steps: readonly (typeof anyStep extends fc.Arbitrary<infer Step> ? Step : never)[],
) {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const member = await signInAs(annals, tenant, 'OWNER')
  const workspaceIds = tenant.workspaces.map(({ id }) => id)
  await db.transaction().execute(async (trx) => {
    const [workspaceId] = workspaceIds
    assert(workspaceId)
    await insertProject(trx, {
      id: newId(),
      companyId: tenant.company.id,
      workspaceId,
      name: 'Other',
    })
    await trx
      .insertInto('project')
      .values(workspaceIds.map((id) => ({ id: PROJECT, workspace_id: id, name: 'Shared' })))
      .execute()
  })
  for (const step of steps) {
    if (step.kind === 'send') {
      for (const [index, { workspaceKey }] of tenant.workspaces.entries()) {
        const own = step.facts.filter(({ workspace }) => workspace === index)
        await sendEvents(annals, workspaceKey, own.map(inputOf))
      }
    } else if (step.kind === 'count') {
      const workspaceId = workspaceIds[step.workspace]
      assert(workspaceId)
      await advanceRollup(db, workspaceId, { runMax: step.runMax })
    } else if (step.kind === 'remove') {
      const workspaceId = workspaceIds[step.workspace]
      assert(workspaceId)
      await removeUpTo(annals, workspaceId, await lastOf(workspaceId, step.events))
    } else {
      advance(step.days * DAY_MS)
      const hotSinceMs = clock() - 365 * DAY_MS
      for (const workspaceId of step.movesFloor ? workspaceIds : []) {
        await moveRollupFloor(db, workspaceId, { hotSinceMs, runMax: 3 })
      }
    }
  }
  // Keep the members of a test signed in, however much time passes.
  await db
    .updateTable('user_session')
    .set({ seen_at: new Date(clock()), expires_at: new Date(clock() + DAY_MS) })
    .execute()
  return { member, workspaceIds }
}

/** Don't remove more events than there are. */
async function lastOf(workspaceId: WorkspaceId, events: number): Promise<number> {
  const row = await db
    .selectFrom('rollup_head')
    .select('floor_seq')
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  return Math.min(headSeq, (row?.floor_seq ?? 0) + events)
}

function inputOf({
  minutesAgo,
  hasProject,
  category,
  action,
  actorId,
  actorEmail,
  resourceType,
  resourceId,
}: Facts) {
  return {
    category,
    action,
    timestamp: new Date(clock() - minutesAgo * MINUTE_MS).toISOString(),
    ...(hasProject && { projectId: PROJECT }),
    actor: {
      ...(actorId !== undefined && { id: actorId }),
      ...(actorEmail !== undefined && { email: actorEmail }),
    },
    resource: {
      ...(resourceType !== undefined && { type: resourceType }),
      ...(resourceId !== undefined && { id: resourceId }),
    },
  }
}

async function assertHistogram(
  member: Member,
  { timeZone, ...query }: Parameters,
  by: string,
): Promise<void> {
  const events = await walkExplorer(member, query)
  const { status, json, text } = await readHistogram(member, {
    ...query,
    by,
    ...(timeZone && { timeZone }),
  })
  assert.equal(status, 200, text)
  assert.equal(json.total, events.length, JSON.stringify(query))
  const seen = new Map<string, number>()
  const named = new Set(json.series.map(({ value }: { value: string | null }) => value))
  for (const event of events) {
    const bar = json.bars.findLast((start: string) => start <= event.timestamp)
    assert(bar !== undefined && event.timestamp < json.lastBarEnd)
    const own = groupOf(event, by)
    const value = named.has(own) ? own : null
    const key = `${bar} ${value}`
    seen.set(key, (seen.get(key) ?? 0) + 1)
  }
  const shown = new Map<string, number>()
  for (const { value, counts } of json.series) {
    assert.equal(counts.length, json.bars.length)
    for (const [index, count] of counts.entries()) {
      if (count > 0) shown.set(`${json.bars[index]} ${value}`, count)
    }
  }
  assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(seen))
}

/** The value that the histogram groups an event by. */
function groupOf({ actor, resource, ...event }: TestResponse['json'], by: string): string | null {
  const { id: actorId, email: actorEmail } = actor ?? {}
  const { id: resourceId, type: resourceType } = resource ?? {}
  const parts: Record<string, string> = { actorId, actorEmail, resourceType, resourceId }
  return parts[by] ?? event[by] ?? null
}

async function assertOptions(member: Member, range: Parameters): Promise<void> {
  const events = await walkExplorer(member, range)
  const read: Record<string, (event: Record<string, never>) => string | undefined> = {
    category: ({ category }) => category,
    action: ({ action }) => action,
    ...(Object.keys(range).length === 0 && {
      actorId: ({ actor }) => actor?.['id'],
      actorEmail: ({ actor }) => actor?.['email'],
      resourceType: ({ resource }) => resource?.['type'],
      resourceId: ({ resource }) => resource?.['id'],
      projectId: ({ projectId }) => projectId ?? undefined,
    }),
  }
  for (const [field, valueOf] of Object.entries(read)) {
    const { status, json, text } = await readOptions(member, { field, limit: '50', ...range })
    assert.equal(status, 200, text)
    const wanted: Record<string, number> = {}
    for (const value of events.map(valueOf))
      if (value !== undefined && value !== null) wanted[value] = (wanted[value] ?? 0) + 1
    const shown = json.values.map(({ value, count }: { value: string; count: number }) => [
      value,
      count,
    ])
    assert.deepEqual(Object.fromEntries(shown), wanted, field)
  }
}
