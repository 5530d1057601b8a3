import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { newId } from '../../src/platform/id.ts'
import { insertProject } from '../../src/tenancy/workspace/workspace-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { listPage, walkEvents } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const START_MS = clock() - 100
const TIMES = Array.from({ length: 9 }, (_, index) => new Date(START_MS + index * 3).toISOString())
const PROJECTS = [newId<'project'>(), newId<'project'>()]

/** Small domains, so that filters match often and timestamps are shared. */
const DOMAIN = {
  category: ['billing', 'auth', 'Ünïcode 🎈'],
  action: ['create', 'delete', 'a&b=c%'],
  projectId: PROJECTS,
  actorId: ['ada', 'ADA', 'grace', ''],
  actorEmail: ['ada@example.com', 'Ada@example.com'],
  resourceType: ['invoice', 'user'],
  resourceId: ['1', '2', "'; drop table event; --"],
} as const
type Field = keyof typeof DOMAIN
const FIELDS = [
  'category',
  'action',
  'projectId',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly Field[]

type Facts = Partial<Record<Field, string>> & { timestamp: string }
type Filter = Partial<Record<Field | 'from' | 'to', string>>

const anyFacts: fc.Arbitrary<Facts> = fc.record(
  {
    timestamp: fc.constantFrom(...TIMES),
    category: fc.constantFrom(...DOMAIN.category),
    action: fc.constantFrom(...DOMAIN.action),
    projectId: fc.constantFrom(...DOMAIN.projectId),
    actorId: fc.constantFrom(...DOMAIN.actorId),
    actorEmail: fc.constantFrom(...DOMAIN.actorEmail),
    resourceType: fc.constantFrom(...DOMAIN.resourceType),
    resourceId: fc.constantFrom(...DOMAIN.resourceId),
  },
  { requiredKeys: ['timestamp', 'category', 'action'] },
)

const anyFilter: fc.Arbitrary<Filter> = fc
  .record(
    {
      from: fc.constantFrom(...TIMES),
      to: fc.constantFrom(...TIMES),
      category: fc.constantFrom(...DOMAIN.category, 'none'),
      action: fc.constantFrom(...DOMAIN.action),
      projectId: fc.constantFrom(...DOMAIN.projectId),
      actorId: fc.constantFrom(...DOMAIN.actorId),
      actorEmail: fc.constantFrom(...DOMAIN.actorEmail),
      resourceType: fc.constantFrom(...DOMAIN.resourceType, 'none'),
      resourceId: fc.constantFrom(...DOMAIN.resourceId),
    },
    { requiredKeys: [] },
  )
  .filter(({ from, to }) => from === undefined || to === undefined || from < to)

/** Every filter alone and every pair of filters, with each of their values. */
function singlesAndPairs(): Filter[] {
  const singles: Filter[] = [
    ...FIELDS.flatMap((field) => DOMAIN[field].map((value) => ({ [field]: value }))),
    { from: TIMES[4] ?? '' },
    { to: TIMES[4] ?? '' },
  ]
  const pairs = singles.flatMap((first, index) =>
    singles.slice(index + 1).map((second) => ({ ...first, ...second })),
  )
  return [...singles, ...pairs]
}

/** An independent implementation of a filter. */
function matches(facts: Facts, { from, to, ...fields }: Filter): boolean {
  if (from !== undefined && facts.timestamp < from) return false
  if (to !== undefined && facts.timestamp >= to) return false
  return FIELDS.every((name) => fields[name] === undefined || fields[name] === facts[name])
}

function inputOf(facts: Facts) {
  const { category, action, timestamp, projectId } = facts
  const { actorId, actorEmail, resourceType, resourceId } = facts
  const actor = {
    ...(actorId !== undefined && { id: actorId }),
    ...(actorEmail !== undefined && { email: actorEmail }),
  }
  const resource = {
    ...(resourceType !== undefined && { type: resourceType }),
    ...(resourceId !== undefined && { id: resourceId }),
  }
  return {
    category,
    action,
    timestamp,
    ...(projectId !== undefined && { projectId }),
    ...(Object.keys(actor).length > 0 && { actor }),
    ...(Object.keys(resource).length > 0 && { resource }),
  }
}

/** A company whose first workspace has these events, and the events that a filter must return. */
async function store(facts: readonly Facts[]) {
  const tenant = await annals.createCompany()
  const { company, workspace, workspaceKey: key } = tenant
  await annals.app.database.db.transaction().execute(async (trx) => {
    for (const id of PROJECTS) {
      const names = { companyId: company.id, workspaceId: workspace.id, name: id }
      await insertProject(trx, { id, ...names })
    }
  })
  const body = { events: facts.map(inputOf) }
  const { status, json, text } = await annals.call('POST', '/v1/events/batch', { key, body })
  assert.equal(status, 200, text)
  const stored = facts.map((fact, index) => ({ fact, id: String(json.results[index].id) }))
  const expected = (filter: Filter) =>
    stored
      .filter(({ fact }) => matches(fact, filter))
      .toSorted((a, b) =>
        a.fact.timestamp === b.fact.timestamp
          ? a.id < b.id
            ? 1
            : -1
          : a.fact.timestamp < b.fact.timestamp
            ? 1
            : -1,
      )
      .map(({ id }) => id)
  return { ...tenant, expected }
}

test('any combination of filters returns exactly the matching events, in order', async () => {
  const anyLedger = fc.array(anyFacts, { minLength: 20, maxLength: 150 })
  const anyQuestions = fc.array(fc.tuple(anyFilter, fc.integer({ min: 5, max: 200 })), {
    minLength: 30,
    maxLength: 30,
  })
  await fc.assert(
    fc.asyncProperty(anyLedger, anyQuestions, async (facts, questions) => {
      const { workspaceKey, companyKey, expected } = await store(facts)
      for (const [filter, limit] of questions) {
        for (const key of [workspaceKey, companyKey]) {
          const shown = await walkEvents(annals, key, { ...filter, limit: String(limit) })
          assert.deepEqual(
            shown.map(({ id }) => id),
            expected(filter),
          )
        }
      }
    }),
    { numRuns: rounds(1, 4), endOnFailure: true },
  )
})

test('every filter alone and every pair of filters return the right events', async () => {
  const { workspaceKey, expected } = await store(fc.sample(anyFacts, { numRuns: 300, seed: 7 }))
  let shownInAll = 0
  for (const filter of singlesAndPairs().filter(({ from, to }) => !from || !to || from < to)) {
    const shown = await walkEvents(annals, workspaceKey, filter)
    assert.deepEqual(
      shown.map(({ id }) => id),
      expected(filter),
      JSON.stringify(filter),
    )
    shownInAll += shown.length
  }
  assert(shownInAll > 1_000, 'the filters are not all empty')
})

test('from is inclusive and to exclusive, to the millisecond', async () => {
  const timestamp = TIMES[4] ?? ''
  const { workspaceKey: key } = await store([{ timestamp, category: 'c', action: 'a' }])
  const ms = Date.parse(timestamp)
  const count = async (fromMs: number, toMs: number) => {
    const range = { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
    return (await walkEvents(annals, key, range)).length
  }
  assert.equal(await count(ms, ms + 1), 1)
  assert.equal(await count(ms - 1, ms), 0)
  assert.equal(await count(ms + 1, ms + 2), 0)
  assert.equal((await walkEvents(annals, key, { from: '0000-01-01T00:00:00Z' })).length, 1)
  assert.equal((await walkEvents(annals, key, { to: '9999-12-31T23:59:59.999Z' })).length, 1)
  assert.equal((await walkEvents(annals, key, { from: '9999-12-31T23:59:59.999Z' })).length, 0)
  assert.equal((await walkEvents(annals, key, { to: '0000-01-01T00:00:00Z' })).length, 0)
})

test('finds an event by its timestamp, however far that is from its receipt', async () => {
  const times = [
    new Date(clock() + DAY_MS).toISOString(),
    '2001-01-01T00:00:00.000Z',
    '0000-01-01T00:00:00.000Z',
  ]
  const { workspaceKey: key } = await store(
    times.map((timestamp) => ({ timestamp, category: 'c', action: 'a' })),
  )
  for (const [index, from] of times.entries()) {
    assert.equal((await walkEvents(annals, key, { from })).length, index + 1, from)
  }
})

const HOT_DAYS = { FREE: 7, STARTER: 30, PRO: 90, ENTERPRISE: 365 } as const

for (const plan of ['FREE', 'STARTER', 'PRO', 'ENTERPRISE'] as const) {
  test(`a ${plan} company sees the events received in the last ${HOT_DAYS[plan]} days`, async () => {
    const { workspaceKey: key } = await annals.createCompany({ plan })
    const hotMs = HOT_DAYS[plan] * DAY_MS
    const receivedAtMs = clock()
    // By time of receipt, not by the client's timestamp.
    const bodies = [
      { category: 'c', action: 'now' },
      { category: 'c', action: 'old', timestamp: '2001-01-01T00:00:00Z' },
    ]
    for (const body of bodies) await annals.call('POST', '/v1/events', { key, body })
    const hotSince = async () => {
      const { headers, json } = await listPage(annals, key)
      return [headers.get('x-hot-since'), json.data.length]
    }
    assert.deepEqual(await hotSince(), [new Date(receivedAtMs - hotMs).toISOString(), 2])
    advance(hotMs)
    assert.deepEqual(await hotSince(), [new Date(receivedAtMs).toISOString(), 2])
    advance(1)
    assert.deepEqual(await hotSince(), [new Date(receivedAtMs + 1).toISOString(), 0])
  })
}
