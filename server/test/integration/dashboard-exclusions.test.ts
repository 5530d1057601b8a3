import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { matchesFilter } from '../harness/event/metadata-match.ts'
import * as fc from 'fast-check'
import { sql } from 'kysely'
import { openapiTexts } from '../../tools/print-openapi.ts'
import { readFilter } from '../../src/edge/event/event-filter-input.ts'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { listChainRun } from '../../src/ledger/event-store.ts'
import { EXCLUDED_FIELDS, valuesByField } from '../../src/ledger/filter/exclusion.ts'
import type { ExcludedField } from '../../src/ledger/filter/exclusion.ts'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import { newId } from '../../src/platform/id.ts'
import { insertProject } from '../../src/tenancy/workspace/workspace-store.ts'
import { assertDocumented, walk } from '../contract/driver.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { enroll, openDashboardDownload } from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { actionsOf, openSource } from '../harness/http/event-source.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  explore,
  readHistogram,
  readOptions,
  search,
  sendEvents,
  walkExplorer,
} from '../harness/dashboard/explorer.ts'
import { parseJsonl } from '../harness/export/exports.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { idsOf, listPage } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const HOUR_MS = 3_600_000
const TIMES = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }

/** Values that contain each other, or look like SQL, JSON or our own filter syntax. */
const VALUES = ['billing', 'Billing', 'bill', 'a:b', "o'neil", '{x,"y"}', 'null', '😀 \\'] as const
const PROJECTS = [newId<'project'>(), newId<'project'>()] as const

const anyValue = fc.constantFrom(...VALUES)
const anyEvent = fc.record(
  {
    category: anyValue,
    action: anyValue,
    projectId: fc.constantFrom(...PROJECTS),
    actor: fc.record(
      { id: fc.constantFrom(...VALUES, ''), email: fc.constantFrom('a@x.y', 'A@x.y') },
      { requiredKeys: [] },
    ),
    resource: fc.record({ type: anyValue, id: anyValue }, { requiredKeys: [] }),
  },
  { requiredKeys: ['category', 'action'] },
)
type AnyEvent = typeof anyEvent extends fc.Arbitrary<infer Event> ? Event : never

const anyExclusion = fc.constantFrom(...EXCLUDED_FIELDS).chain((field) => {
  const special: Partial<Record<ExcludedField, readonly string[]>> = {
    projectId: PROJECTS,
    actorEmail: ['a@x.y', 'A@x.y'],
    actorId: [...VALUES, ''],
  }
  return fc.constantFrom(...(special[field] ?? VALUES)).map((value) => ({ field, value }))
})
type AnyExclusion = typeof anyExclusion extends fc.Arbitrary<infer One> ? One : never
const anyQuestion = fc.record({
  listed: fc.array(anyExclusion, { maxLength: 6 }),
  excluded: fc.array(anyExclusion, { maxLength: 6 }),
  text: fc.option(fc.constantFrom('bill', 'b', 'X', 'nowhere')),
})

/** An independent implementation of filters by a value and exclusions. */
function has({ category, action, projectId, actor, resource }: AnyEvent, one: AnyExclusion) {
  const values = {
    category,
    action,
    projectId,
    actorId: actor?.id,
    actorEmail: actor?.email,
    resourceType: resource?.type,
    resourceId: resource?.id,
  }
  return values[one.field] === one.value
}

test('lists of values and exclusions apply to pages, counts and archived events alike, and never exclude events without a value', async () => {
  const sets = fc.array(anyEvent, { minLength: 8, maxLength: 40 })
  const questions = fc.array(anyQuestion, { minLength: 6, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(sets, questions, async (events, queries) => {
      const tenant = await annals.createCompany()
      const workspaceId = tenant.workspace.id
      const member = await enroll(annals, tenant, 'OWNER')
      await db
        .insertInto('project')
        .values(PROJECTS.map((id) => ({ id, workspace_id: workspaceId, name: id })))
        .execute()
      const ids = await sendEvents(annals, tenant.workspaceKey, events)
      await advanceRollup(db, workspaceId, { runMax: 5 })
      const { entries: run } = await listChainRun(db, { workspaceId, afterSeq: 0, limit: 1_000 })
      for (const { listed, excluded, text } of queries) {
        const parameters = {
          ...Object.fromEntries(valuesByField(listed)),
          ...(text !== null && { text }),
          not: excluded.map(({ field, value }) => `${field}:${value}`),
        }
        const filter = readFilter(parameters, { fromPath: 'from' })
        const byProgram = run.flatMap(({ event }) => (matchesFilter(event, filter) ? event.id : []))
        const included = new Set<string>(
          run.flatMap(({ event }) =>
            matchesFilter(event, { ...NO_FILTER, text }) ? event.id : [],
          ),
        )
        const byHand = ids.filter((id, index) => {
          const event = events[index]
          if (!event || !included.has(id) || excluded.some((one) => has(event, one))) return false
          const matched = listed.filter((one) => has(event, one)).map(({ field }) => field)
          return listed.every(({ field }) => matched.includes(field))
        })
        assert.deepEqual(byProgram, byHand)
        const byDatabase = idsOf(await walkExplorer(member, parameters))
        assert.deepEqual(byDatabase.toSorted(), byHand.toSorted(), JSON.stringify(parameters))
        const { json } = await readHistogram(member, { ...parameters, by: 'action' })
        assert.equal(json.total, byHand.length, JSON.stringify(parameters))
      }
    }),
    { numRuns: rounds(4, 12) },
  )
})

/** A company with events of three categories, half of them without an actor. */
async function createKinds(count = 30) {
  const tenant = await annals.createCompany()
  const events = Array.from({ length: count }, (_, nth) => ({
    category: ['auth', 'billing', 'a:b'][nth % 3],
    action: `action ${nth}`,
    ...(nth % 2 === 0 && { actor: { id: `actor ${nth % 4}`, email: 'ann@example.com' } }),
  }))
  await sendEvents(annals, tenant.workspaceKey, events)
  return { tenant, member: await enroll(annals, tenant, 'OWNER') }
}

const actionsIn = (events: readonly TestResponse['json'][]): string[] =>
  events.map(({ action }) => String(action)).toSorted()

test('the order and repetition of exclusions do not matter, and a cursor of others is rejected', async () => {
  const { member } = await createKinds()
  const first = await explore(member, { limit: '10', not: ['category:auth', 'actorId:actor 2'] })
  const cursor: string = first.json.nextCursor
  const same = ['actorId:actor 2', 'category:auth', 'actorId:actor 2']
  assert.equal((await explore(member, { not: same, cursor })).status, 200)
  for (const not of [[], ['category:auth'], ['category:billing', 'actorId:actor 2']]) {
    const response = await explore(member, { not, cursor })
    assert.deepEqual([response.status, response.json.code], [400, 'invalid_cursor'])
  }
  const plain = await explore(member, { limit: '10' })
  const moved = await explore(member, { not: 'category:auth', cursor: plain.json.nextCursor })
  assert.equal(moved.json.code, 'invalid_cursor')
})

test('the order and repetition of values do not matter, and a single value keeps its cursors', async () => {
  const { member } = await createKinds(60)
  const first = await explore(member, { limit: '10', category: ['billing', 'auth'] })
  const cursor: string = first.json.nextCursor
  const same = { category: ['auth', 'billing', 'auth'], cursor }
  assert.equal((await explore(member, same)).status, 200)
  for (const category of ['auth', ['auth', 'a:b'], ['auth', 'billing', 'a:b']]) {
    const response = await explore(member, { category, cursor })
    assert.deepEqual([response.status, response.json.code], [400, 'invalid_cursor'])
  }
  const one = await explore(member, { limit: '10', category: 'auth' })
  const repeated = { category: ['auth', 'auth'], cursor: one.json.nextCursor }
  assert.equal((await explore(member, repeated)).status, 200)
})

test('rejects more than 20 values of a field, in a query and in a body', async () => {
  const { member } = await createKinds(3)
  const many = Array.from({ length: 21 }, (_, nth) => `c${nth}`)
  for (const ask of [explore, readHistogram]) {
    const { status, json } = await ask(member, { category: many })
    assert.deepEqual([status, json.details[0].path], [400, 'category'])
    assert.equal((await ask(member, { category: many.slice(1) })).status, 200)
  }
  const filters = { action: 'a', anyOf: many.map((value) => `category:${value}`) }
  const body = { source: 'HOT', format: 'CSV', filters }
  const job = await member.call('POST', '/dashboard/exports', { body })
  assert.deepEqual([job.status, job.json.details[0].path], [400, '/filters/anyOf'])
  const view = { name: 'v', workspaceId: null, visibility: 'PRIVATE', query: filters }
  const refused = await member.call('POST', '/dashboard/explorer/views', { body: view })
  assert.deepEqual([refused.status, refused.json.details[0].path], [400, '/query/anyOf'])
})

test('rejects an invalid exclusion with a 400 that says which one and why', async () => {
  const { tenant, member } = await createKinds(3)
  const many = Array.from({ length: 21 }, (_, nth) => `category:c${nth}`)
  const bad: [not: string | string[], path: RegExp, message: RegExp][] = [
    [many, /^not$/, /20/],
    ['billing', /^not\/0$/, /one of category, .*such as category:billing/],
    [['category:x', 'severity:high'], /^not\/1$/, /one of category, action/],
    ['traceId:x', /^not\/0$/, /one of category/],
    ['projectId:x', /^not\/0$/, /projectId must be a UUID/],
    ['', /^not\/0$/, /one of category/],
    ['category:a\0b', /^not$/, /U\+0000/],
    [['category:x', 'category:a\0b'], /^not$/, /U\+0000/],
    [`category:${'x'.repeat(600)}`, /^not\/0$/, /525/],
  ]
  for (const ask of [explore, readHistogram]) {
    for (const [not, path, message] of bad) {
      const { status, json } = await ask(member, { not })
      assert.equal(status, 400, JSON.stringify(not))
      assert.equal(json.code, 'invalid_request')
      assert.match(json.details[0].path, path)
      assert.match(json.details[0].message, message)
    }
    assert.equal((await ask(member, { not: many.slice(1) })).status, 200)
  }
  for (const parameters of [{ field: 'actorId', ...TIMES }, { field: 'action' }]) {
    const { status, json } = await readOptions(member, { ...parameters, not: 'category:auth' })
    assert.equal(status, 400)
    assert.match(
      json.error,
      /not requires from and to, and is only available for category and action/,
    )
  }
  const query = { not: ['category:x', 'severity:high'] }
  const view = { name: 'v', workspaceId: null, visibility: 'PRIVATE', query }
  const refused = await member.call('POST', '/dashboard/explorer/views', { body: view })
  assert.equal(refused.status, 400)
  assert.equal(refused.json.details[0].path, '/query/not/1')
  const body = { source: 'HOT', format: 'CSV', filters: { not: many } }
  for (const path of ['/dashboard/exports', '/dashboard/exports/preflight']) {
    const response = await member.call('POST', path, { body })
    assert.equal(response.status, 400)
    assert.equal(response.json.details[0].path, '/filters/not')
  }
  const asKey = await listPage(annals, tenant.workspaceKey, { not: 'category:auth' })
  assert.equal(asKey.status, 400, 'the API keeps the filters of its contract')
  const job = await annals.call('POST', '/v1/exports', {
    key: tenant.workspaceKey,
    body: { source: 'HOT', format: 'CSV', filters: { not: ['category:auth'] } },
  })
  assert.equal(job.status, 400)
})

test('excludes a value with colons as a whole, and treats projects of others as unknown', async () => {
  const { tenant, member } = await createKinds(9)
  const found = await walkExplorer(member, { not: ['category:a:b', 'category:auth'] })
  assert.deepEqual(actionsIn(found), ['action 1', 'action 4', 'action 7'])
  const foreign = await annals.createCompany()
  const projectId = newId<'project'>()
  await db.transaction().execute((trx) =>
    insertProject(trx, {
      id: projectId,
      companyId: foreign.company.id,
      workspaceId: foreign.workspace.id,
      name: 'Theirs',
    }),
  )
  for (const id of [projectId, projectId.toUpperCase(), newId()]) {
    const response = await explore(member, { not: `projectId:${id}` })
    assert.equal(response.status, 200)
    assert.equal(response.json.data.length, 9)
    assert(!response.text.includes('Theirs'))
  }
  assert.equal((await explore(member, { workspaceId: foreign.workspace.id })).status, 404)
  assert.equal((await walkExplorer(member, { workspaceId: tenant.workspace.id })).length, 9)
})

test('suggestions omit excluded events, whether counted by the worker or live', async () => {
  const { tenant, member } = await createKinds()
  await advanceRollup(db, tenant.workspace.id, { runMax: 20 })
  const ask = async (not: string[]) =>
    (await readOptions(member, { field: 'category', ...TIMES, not })).json.values
  assert.deepEqual(await ask(['category:auth']), [
    { value: 'a:b', count: 10 },
    { value: 'billing', count: 10 },
  ])
  assert.deepEqual(await ask(['category:auth', 'actorEmail:ann@example.com']), [
    { value: 'a:b', count: 5 },
    { value: 'billing', count: 5 },
  ])
})

test('a live tail sends events that have any of the values, and resumes only with the same ones', async () => {
  const { tenant, member } = await createKinds(3)
  const category = ['one', 'two']
  await using source = await openSource(annals, member, { query: search({ category }) })
  await sendEvents(annals, tenant.workspaceKey, [
    { category: 'one', action: 'first' },
    { category: 'three', action: 'left out' },
    { category: 'two', action: 'second' },
  ])
  await eventually(() => assert(actionsOf(source).includes('second')))
  assert.deepEqual(actionsOf(source), ['first', 'second'])
  const lastId = source.lastId()
  for (const [values, event] of [
    [['two', 'one'], 'open'],
    [['one'], 'gap'],
  ] as const) {
    const query = search({ category: [...values] })
    await using again = await openSource(annals, member, { query, lastId })
    await eventually(() => assert(again.frames.length > 0))
    assert.equal(again.frames[0]?.event, event)
  }
})

test('a live tail omits excluded events, and resumes only with the same exclusions', async () => {
  const { tenant, member } = await createKinds(3)
  const not = ['category:noise', 'actorId:robot']
  await using source = await openSource(annals, member, { query: search({ not }) })
  await sendEvents(annals, tenant.workspaceKey, [
    { category: 'noise', action: 'left out' },
    { category: 'c', action: 'by a robot', actor: { id: 'robot' } },
    { category: 'c', action: 'by nobody' },
    { category: 'c', action: 'by ann', actor: { id: 'ann' } },
  ])
  await eventually(() => assert(actionsOf(source).includes('by ann')))
  assert.deepEqual(actionsOf(source), ['by nobody', 'by ann'])
  const lastId = source.lastId()
  const named = async (exclusions: string[]) => {
    await using again = await openSource(annals, member, {
      query: search({ not: exclusions }),
      lastId,
    })
    await eventually(() => assert(again.frames.length > 0))
    return again.frames[0]?.event
  }
  assert.equal(await named(not.toReversed()), 'open')
  assert.equal(await named(['category:noise']), 'gap')
})

async function make(member: Member, options: object): Promise<TestResponse['json']> {
  const body = { source: 'HOT', format: 'JSONL', ...options }
  const response = await member.call('POST', '/dashboard/exports', { body })
  assert.equal(response.status, 201, response.text)
  return response.json
}

async function take(member: Member, jobId: string): Promise<TestResponse['json'][]> {
  const opened = await openDashboardDownload(annals, member, jobId)
  return parseJsonl((await opened.rest()).text)
}

test('an export contains exactly the events of the page: hot, archived and both, with the announced rows', async () => {
  const { tenant, member } = await createKinds(60)
  const not = ['category:billing', 'actorId:actor 2', `projectId:${newId()}`]
  const shown = actionsIn(await walkExplorer(member, { not }))
  assert(shown.length > 0 && shown.length < 40)
  const filters = { ...TIMES, not }
  const preflight = async (source: string) => {
    const body = { source, format: 'JSONL', filters }
    return (await member.call('POST', '/dashboard/exports/preflight', { body })).json
  }
  const rowsOf = async (source: string) =>
    actionsIn(await take(member, (await make(member, { source, filters })).id))
  assert.equal((await preflight('HOT')).rows, String(shown.length))
  assert.deepEqual(await rowsOf('HOT'), shown)
  assert.equal((await archiveAll(annals)).failed, 0)
  const later = { category: 'auth', action: 'later' }
  await sendEvents(annals, tenant.workspaceKey, [later, { ...later, category: 'billing' }])
  assert.deepEqual(await rowsOf('ARCHIVED'), shown)
  assert.deepEqual(await rowsOf('HOT_AND_ARCHIVED'), [...shown, 'later'].toSorted())
  assert.equal((await preflight('ARCHIVED')).isEstimate, true)
})

test('views, exports and their reruns keep several values of a field, hot and archived', async () => {
  const { tenant, member } = await createKinds(60)
  const anyOf = ['category:auth', 'category:billing', 'actorId:actor 0', 'actorId:actor 2']
  const parameters = { category: ['auth', 'billing'], actorId: ['actor 0', 'actor 2'] }
  const shown = actionsIn(await walkExplorer(member, parameters))
  assert(shown.length > 0 && shown.length < 30)
  const query = { ...TIMES, anyOf }
  const view = { name: 'Both', workspaceId: null, visibility: 'PRIVATE', query }
  const saved = await member.call('POST', '/dashboard/explorer/views', { body: view })
  assert.deepEqual([saved.status, saved.json.query], [201, query])
  const path = `/dashboard/explorer/views/${saved.json.id}/run`
  const ran = await member.call('POST', path, { body: { limit: 100 } })
  assert.deepEqual(actionsIn(ran.json.data), shown)

  const savedExplorerViewId = saved.json.id
  const ofView = await make(member, { savedExplorerViewId })
  assert.deepEqual(actionsIn(await take(member, ofView.id)), shown)
  const asKey = await annals.call('GET', `/v1/exports/${ofView.id}`, { key: tenant.companyKey })
  assert.deepEqual(asKey.json.filters.anyOf, anyOf)
  const again = await member.call('POST', `/dashboard/exports/${ofView.id}/rerun`)
  assert.deepEqual(actionsIn(await take(member, again.json.id)), shown)
  const won = await make(member, { savedExplorerViewId, filters: { category: 'a:b' } })
  assert.deepEqual([won.filters.category, won.filters.anyOf], ['a:b', anyOf.slice(2)])

  assert.equal((await archiveAll(annals)).failed, 0)
  const archived = await make(member, { source: 'ARCHIVED', filters: query })
  assert.deepEqual(actionsIn(await take(member, archived.id)), shown)
})

test('a job shows its exclusions, also to a key and in the audit log, and a rerun applies them again', async () => {
  const { tenant, member } = await createKinds()
  const given = ['actorId:actor 2', 'category:billing', 'category:a:b', 'category:billing']
  const ordered = ['category:a:b', 'category:billing', 'actorId:actor 2']
  const job = await make(member, { filters: { not: given } })
  assert.deepEqual(job.filters, { not: ordered })
  const asKey = await annals.call('GET', `/v1/exports/${job.id}`, { key: tenant.companyKey })
  const getExport = walk(JSON.parse((await openapiTexts()).v1)).find(
    ({ operationId }) => operationId === 'getExport',
  )
  assert(getExport)
  assertDocumented(getExport, asKey)
  assert.deepEqual(asKey.json.filters, { not: ordered })
  const rows = await take(member, job.id)
  const again = await member.call('POST', `/dashboard/exports/${job.id}/rerun`)
  assert.deepEqual(again.json.filters, { not: ordered })
  assert.deepEqual(await take(member, again.json.id), rows)
  const entry = (await readAudit(annals, tenant)).find(({ resource }) => resource.id === job.id)
  assert.deepEqual(entry?.metadata.filters, { not: ordered })
})

test('views and templates store exclusions, and an export of a view applies them', async () => {
  const { member } = await createKinds()
  const query = { range: '24h', not: ['category:billing', 'actorId:actor 2'] }
  const body = { name: 'Quiet', workspaceId: null, visibility: 'PRIVATE', query }
  const saved = await member.call('POST', '/dashboard/explorer/views', { body })
  assert.equal(saved.status, 201, saved.text)
  assert.deepEqual(saved.json.query, query)
  const shown = actionsIn(await walkExplorer(member, { not: query.not }))
  const ran = await member.call('POST', `/dashboard/explorer/views/${saved.json.id}/run`, {
    body: { limit: 100 },
  })
  assert.deepEqual(actionsIn(ran.json.data), shown)
  const savedExplorerViewId = saved.json.id
  const ofView = await make(member, { savedExplorerViewId })
  assert.deepEqual(actionsIn(await take(member, ofView.id)), shown)
  const won = await make(member, { savedExplorerViewId, filters: { not: ['category:auth'] } })
  assert.deepEqual(won.filters.not, ['category:auth'], 'an explicit field wins as a whole')
  const all = await make(member, { savedExplorerViewId, filters: { not: [] } })
  assert.equal((await take(member, all.id)).length, 30)
  const template = await member.call('POST', '/dashboard/export-templates', {
    body: { name: 'Quiet', body: { source: 'HOT', format: 'JSONL', filters: query } },
  })
  assert.equal(template.status, 201, template.text)
  const path = `/dashboard/export-templates/${template.json.id}/run`
  const made = await member.call('POST', path)
  assert.deepEqual(actionsIn(await take(member, made.json.id)), shown)
})

test('a view that excludes by a field of another version says so and is not run without it', async () => {
  const { member } = await createKinds(3)
  const body = { name: 'v', workspaceId: null, visibility: 'PRIVATE', query: { category: 'auth' } }
  const { json } = await member.call('POST', '/dashboard/explorer/views', { body })
  const stored = JSON.stringify({ category: 'auth', not: ['category:x', 'severity:high'] })
  await sql`update explorer_view set query = ${stored}::jsonb where id = ${json.id}`.execute(db)
  const [view] = (await member.call('GET', '/dashboard/explorer/views')).json.views
  assert.deepEqual([view.isUsable, view.unusableFields], [false, ['not.1']])
  const ran = await member.call('POST', `/dashboard/explorer/views/${json.id}/run`)
  assert.deepEqual([ran.status, ran.json.code], [409, 'conflict'])
  assert.match(ran.json.error, /not\.1.*Save it again/)
})

test('counts over a period match the page, with the worker behind, up to date, and with late events', async () => {
  const tenant = await annals.createCompany()
  const member = await enroll(annals, tenant, 'OWNER')
  const nowMs = Date.now()
  const event = (nth: number) => ({
    category: ['auth', 'billing', 'ops'][nth % 3],
    action: ['read', 'write'][nth % 2],
    timestamp: new Date(nowMs - (nth % 50) * (HOUR_MS / 7)).toISOString(),
  })
  const all = Array.from({ length: 150 }, (_, nth) => event(nth))
  const range = {
    from: new Date(nowMs - 6.3 * HOUR_MS).toISOString(),
    to: new Date(nowMs - 0.2 * HOUR_MS).toISOString(),
  }
  const expected = (sent: typeof all) =>
    sent.filter(
      ({ category, action, timestamp }) =>
        category !== 'billing' &&
        !(action === 'write') &&
        timestamp >= range.from &&
        timestamp < range.to,
    ).length
  const not = ['category:billing', 'action:write']
  const assertCounted = async (sent: typeof all) => {
    const { json } = await readHistogram(member, { ...range, not, by: 'category' })
    assert.equal(json.total, expected(sent))
    const values = json.series.map(({ value }: { value: string }) => value)
    assert.deepEqual(values.toSorted(), ['auth', 'ops'])
    assert.equal((await walkExplorer(member, { ...range, not })).length, expected(sent))
  }
  await sendEvents(annals, tenant.workspaceKey, all.slice(0, 75))
  await assertCounted(all.slice(0, 75))
  await advanceRollup(db, tenant.workspace.id, { runMax: 50 })
  await assertCounted(all.slice(0, 75))
  await advanceRollup(db, tenant.workspace.id, { runMax: 1_000 })
  await assertCounted(all.slice(0, 75))
  await sendEvents(annals, tenant.workspaceKey, all.slice(75))
  await assertCounted(all)
})
