import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { manualClock } from '../harness/timing/clock.ts'
import {
  enroll,
  createWithTwoWorkspaces,
  HOSTILE,
  withoutTable,
} from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const VIEWS = '/dashboard/explorer/views'
const UNKNOWN = '00000000-0000-7000-8000-000000000000'
const refusalOf = ({ status, json }: TestResponse) => [status, json.code]
const actionsIn = ({ json }: TestResponse) =>
  json.data.map(({ action }: { action: string }) => action)

async function save(member: Member, view: object = {}): Promise<TestResponse['json']> {
  const body = { name: 'A view', workspaceId: null, visibility: 'PRIVATE', query: {}, ...view }
  const response = await member.call('POST', VIEWS, { body })
  assert.equal(response.status, 201, response.text)
  return response.json
}

const run = (member: Member, id: string, body: object = {}) =>
  member.call('POST', `${VIEWS}/${id}/run`, { body })
const namesOf = async (member: Member) =>
  (await member.call('GET', VIEWS)).json.views.map(({ name }: { name: string }) => name)

test('a saved view finds what the explorer finds with its query', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  advance(1)
  const query = {
    range: '24h',
    category: 'auth',
    text: 'ANN@',
    columns: ['time', 'actor'],
    groupBy: 'action',
  }
  const view = await save(admin, { name: ' Logins ', workspaceId: production.id, query })
  assert.equal(view.name, 'Logins')
  assert.deepEqual(view.query, query)
  assert.deepEqual(view.owner, { id: admin.userId, email: admin.email })
  assert.deepEqual([view.isUsable, view.mayChange, view.unusableFields], [true, true, []])
  const ran = await run(admin, view.id)
  assert.deepEqual(actionsIn(ran), ['production.login'])
  const { json: explored } = await admin.call(
    'GET',
    `/dashboard/events?workspaceId=${production.id}&category=auth&text=ann%40`,
  )
  assert.deepEqual(ran.json, explored)
  const { json: list } = await admin.call('GET', VIEWS)
  assert.deepEqual(list, { views: [view] })
})

test('a relative range moves with each run, and stays fixed from page to page', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const { id } = await save(admin, { query: { range: '15m' } })
  const events = Array.from({ length: 25 }, (_, index) => ({ category: 'c', action: `a${index}` }))
  await storeEvents(annals, company.workspaceKey, events)
  advance(14 * 60_000)
  const first = await run(admin, id, { limit: 10 })
  assert.equal(first.json.data.length, 10)
  advance(5 * 60_000)
  const second = await run(admin, id, { limit: 10, cursor: first.json.nextCursor })
  const third = await run(admin, id, { limit: 10, cursor: second.json.nextCursor })
  assert.equal(third.json.nextCursor, null)
  const seen = [first, second, third].flatMap(actionsIn)
  assert.equal(new Set(seen).size, 25)
  assert.deepEqual(actionsIn(await run(admin, id)), [])
})

test('a private view belongs to its owner, and a shared one to everyone with its workspace', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const owner = await enroll(annals, company, 'OWNER')
  const analyst = await enroll(annals, company, 'ANALYST', production)
  const viewer = await enroll(annals, company, 'VIEWER', staging)
  const secret = await save(analyst, { name: 'mine', workspaceId: production.id })
  const shared = { visibility: 'WORKSPACE' }
  const here = await save(analyst, { ...shared, name: 'production', workspaceId: production.id })
  await save(owner, { ...shared, name: 'staging', workspaceId: staging.id })
  const all = await save(viewer, { ...shared, name: 'everywhere' })
  assert.deepEqual(await namesOf(owner), ['everywhere', 'production', 'staging'])
  assert.deepEqual(await namesOf(analyst), ['everywhere', 'mine', 'production'])
  assert.deepEqual(await namesOf(viewer), ['everywhere', 'staging'])
  for (const [member, id] of [
    [owner, secret.id],
    [viewer, secret.id],
    [viewer, here.id],
  ] as const) {
    assert.deepEqual(refusalOf(await run(member, id)), [404, 'not_found'])
  }
  const ofAnalyst = actionsIn(await run(analyst, all.id))
  assert.equal(ofAnalyst.length, 3)
  for (const action of ofAnalyst) assert.match(action, /^production/)
  assert.equal(actionsIn(await run(owner, all.id)).length, 6)
  const foreign = await analyst.call('POST', VIEWS, {
    body: { name: 'x', workspaceId: staging.id, visibility: 'PRIVATE', query: {} },
  })
  assert.deepEqual(refusalOf(foreign), [404, 'not_found'])
})

test('a shared view can be changed by its owner, an OWNER or an ADMIN, and others get an error', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const owner = await enroll(annals, company, 'VIEWER', production)
  const other = await enroll(annals, company, 'ANALYST', production)
  const view = await save(owner, { visibility: 'WORKSPACE', workspaceId: production.id })
  const path = `${VIEWS}/${view.id}`
  for (const method of ['PATCH', 'DELETE']) {
    const body = method === 'PATCH' ? { body: { name: 'other' } } : {}
    const refused = await other.call(method, path, body)
    assert.deepEqual(refusalOf(refused), [403, 'insufficient_role'])
    assert.match(refused.json.error, /ANALYST.*owner/)
  }
  assert.equal((await other.call('GET', VIEWS)).json.views[0].mayChange, false)
  const renamed = await admin.call('PATCH', path, { body: { name: 'renamed' } })
  assert.deepEqual([renamed.json.name, renamed.json.owner.email], ['renamed', owner.email])
  const hiding = await admin.call('PATCH', path, { body: { visibility: 'PRIVATE' } })
  assert.deepEqual(refusalOf(hiding), [403, 'insufficient_role'])
  const query = { category: 'auth' }
  const hidden = { visibility: 'PRIVATE', workspaceId: null, query }
  const changed = await owner.call('PATCH', path, { body: hidden })
  assert.equal(changed.status, 200, changed.text)
  assert.deepEqual(
    [changed.json.visibility, changed.json.workspaceId, changed.json.query],
    ['PRIVATE', null, query],
  )
  for (const member of [admin, other]) {
    assert.deepEqual(refusalOf(await member.call('DELETE', path)), [404, 'not_found'])
  }
  assert.equal((await owner.call('DELETE', path)).status, 204)
  assert.equal((await owner.call('DELETE', path)).status, 404)
  const entries = await readAudit(annals, company)
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor.email]),
    [
      ['VIEW_CREATED', owner.email],
      ['VIEW_CHANGED', admin.email],
      ['VIEW_CHANGED', owner.email],
      ['VIEW_DELETED', owner.email],
    ],
  )
  for (const { resource } of entries)
    assert.deepEqual(resource, { type: 'explorer_view', id: view.id })
  assert.equal(entries[1]?.metadata.before.name, 'A view')
  assert.equal(entries[1]?.metadata.after.name, 'renamed')
})

test('a view of another company, an unknown one and an invalid id get the same response', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const view = await save(admin, { visibility: 'WORKSPACE' })
  const stranger = await enroll(annals, await annals.createCompany(), 'OWNER')
  for (const id of [view.id, UNKNOWN, 'no-id']) {
    const responses = [
      await run(stranger, id),
      await stranger.call('PATCH', `${VIEWS}/${id}`, { body: { name: 'x' } }),
      await stranger.call('DELETE', `${VIEWS}/${id}`),
    ]
    for (const { status, json } of responses) {
      assert.deepEqual([status, json.error], [404, 'No such resource.'])
    }
  }
  assert.deepEqual(await namesOf(stranger), [])
  assert.equal((await annals.call('GET', VIEWS)).status, 401)
  const headers = { 'sec-fetch-site': 'cross-site' }
  const posted = await admin.call('DELETE', `${VIEWS}/${view.id}`, { headers })
  assert.deepEqual(refusalOf(posted), [403, 'cross_site'])
})

/** Exclusions with which `{ not }` takes this many bytes of JSON. Some characters take six. */
function exclusionsOf(bytes: number): string[] {
  const not = Array.from({ length: 8 }, (_, nth) => `actorId:${nth}${'x'.repeat(450)}`)
  not.push('actorId:\u0001')
  const missing = bytes - JSON.stringify({ not }).length
  return [...not.slice(0, -1), `${not.at(-1)}${'x'.repeat(missing)}`]
}

test('rejects an invalid view before saving, and names the field', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  const at = '2026-01-01T00:00:00Z'
  const trace = 'a'.repeat(32)
  const cases: [change: object, path: string][] = [
    [{ name: ' ' }, '/name'],
    [{ name: 'x'.repeat(201) }, '/name'],
    [{ visibility: 'PUBLIC' }, '/visibility'],
    [{ workspaceId: 'x' }, '/workspaceId'],
    [{ query: { severity: 'high' } }, '/query/severity'],
    [{ query: { range: '1y' } }, '/query/range'],
    [{ query: { range: '7d', from: at } }, '/query/range'],
    [{ query: { from: at, to: at } }, '/query/from'],
    [{ query: { traceId: 'a' } }, '/query/traceId'],
    [{ query: { text: '' } }, '/query/text'],
    [{ query: { text: 'x'.repeat(201) } }, '/query/text'],
    [{ query: { category: 'x'.repeat(513) } }, '/query/category'],
    [{ query: { columns: Array(21).fill('x') } }, '/query/columns'],
    [{ query: { columns: ['x'.repeat(65)] } }, '/query/columns/0'],
    [{ query: { not: exclusionsOf(4_097) } }, '/query'],
    [{ extra: 1 }, '/extra'],
  ]
  for (const [change, path] of cases) {
    const body = { name: 'x', workspaceId: null, visibility: 'PRIVATE', query: {}, ...change }
    const { status, json, text } = await admin.call('POST', VIEWS, { body })
    assert.equal(status, 400, text)
    assert.equal(json.code, 'invalid_request')
    assert.equal(json.details[0].path, path, text)
  }
  const huge = {
    name: 'x',
    workspaceId: null,
    visibility: 'PRIVATE',
    query: { text: 'x'.repeat(300_000) },
  }
  assert.deepEqual(refusalOf(await admin.call('POST', VIEWS, { body: huge })), [
    413,
    'payload_too_large',
  ])
  await save(admin, { query: { not: exclusionsOf(4_096) } })
  const { id } = await save(admin, { query: { traceId: trace, range: '90d' } })
  assert.equal((await run(admin, id)).status, 200)
  for (const body of [{}, { name: null }, { query: { not: exclusionsOf(4_097) } }]) {
    const change = await admin.call('PATCH', `${VIEWS}/${id}`, { body })
    assert.deepEqual(refusalOf(change), [400, 'invalid_request'])
  }
  const pages: [object, string][] = [
    [{ limit: 9 }, 'invalid_request'],
    [{ limit: 201 }, 'invalid_request'],
    [{ cursor: 'x' }, 'invalid_cursor'],
  ]
  for (const [body, code] of pages)
    assert.deepEqual(refusalOf(await run(admin, id, body)), [400, code])
})

test('a cursor of another member or view is rejected', async () => {
  const company = await annals.createCompany()
  await storeEvents(
    annals,
    company.workspaceKey,
    Array.from({ length: 11 }, (_, index) => ({ category: 'c', action: `a${index}` })),
  )
  const admin = await enroll(annals, company, 'ADMIN')
  const other = await enroll(annals, company, 'ADMIN')
  const view = await save(admin, { visibility: 'WORKSPACE' })
  const twin = await save(admin, { visibility: 'WORKSPACE' })
  const { json } = await run(admin, view.id, { limit: 10 })
  assert(json.nextCursor)
  const body = { limit: 10, cursor: json.nextCursor }
  assert.equal((await run(admin, view.id, body)).json.data.length, 1)
  const explorer = `/dashboard/events?cursor=${json.nextCursor}`
  for (const response of [
    await run(other, view.id, body),
    await run(admin, twin.id, body),
    await admin.call('GET', explorer),
  ]) {
    assert.deepEqual(refusalOf(response), [400, 'invalid_cursor'])
  }
  await admin.call('PATCH', `${VIEWS}/${view.id}`, { body: { query: { category: 'c' } } })
  assert.deepEqual(refusalOf(await run(admin, view.id, body)), [400, 'invalid_cursor'])
})

test('a view with fields unknown to this version is listed as unusable, and running it says so', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const { id } = await save(admin, { query: { category: 'auth' } })
  const stored = JSON.stringify({ category: 'auth', severity: 'high', tags: { a: 1 } })
  await sql`update explorer_view set query = ${stored}::jsonb where id = ${id}`.execute(db)
  const [view] = (await admin.call('GET', VIEWS)).json.views
  assert.equal(view.isUsable, false)
  assert.deepEqual(view.unusableFields.toSorted(), ['severity', 'tags'])
  assert.deepEqual(view.query, { category: 'auth' })
  const refused = await run(admin, id)
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(refused.json.error, /severity.*Save it again/)
  const again = await admin.call('PATCH', `${VIEWS}/${id}`, { body: { query: view.query } })
  assert.equal(again.json.isUsable, true)
  assert.equal((await run(admin, id)).status, 200)
})

test('returns text that looks like a script as text', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const name = HOSTILE.replaceAll('\u2028', ' ')
  const query = { category: HOSTILE, text: HOSTILE, columns: ['<b>'] }
  const { id } = await save(admin, { name, query })
  const response = await admin.call('GET', VIEWS)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
  const [view] = response.json.views
  assert.deepEqual([view.name, view.query], [name, query])
  assert.deepEqual((await run(admin, id)).json.data, [])
  const lines = await admin.call('POST', VIEWS, {
    body: { name: 'two\nlines', workspaceId: null, visibility: 'PRIVATE', query },
  })
  assert.equal(lines.json.details[0].path, '/name')
})

test('a company can have 500 views, even with concurrent requests', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const { id } = await save(admin)
  await sql`
    insert into explorer_view (company_id, id, owner_id, name, visibility, query, created_at, updated_at)
    select company_id, gen_random_uuid(), owner_id, name, visibility, query, created_at, updated_at
      from explorer_view, generate_series(1, ${COMPANY_BOUNDS.viewsMax - 3}) where id = ${id}`.execute(
    db,
  )
  const body = { name: 'one more', workspaceId: null, visibility: 'PRIVATE', query: {} }
  const responses = await Promise.all(
    Array.from({ length: 5 }, () => admin.call('POST', VIEWS, { body })),
  )
  assert.equal(responses.filter(({ status }) => status === 201).length, 2)
  for (const response of responses.filter(({ status }) => status !== 201)) {
    assert.deepEqual(refusalOf(response), [409, 'conflict'])
    assert.match(response.json.error, /500 saved views/)
  }
  assert.equal((await namesOf(admin)).length, 500)
})

test('the list is empty and says why if the table of views is missing', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  await withoutTable(annals, 'explorer_view', async () => {
    const { status, json, headers } = await admin.call('GET', VIEWS)
    assert.deepEqual([status, json], [200, { views: [] }])
    assert.equal(headers.get('x-service-schema-drift'), 'explorer_view')
  })
})
