import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { manualClock } from '../harness/timing/clock.ts'
import {
  enroll,
  createWithTwoWorkspaces,
  HOSTILE,
  openDashboardDownload,
  withoutTable,
} from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { parseJsonl } from '../harness/export/exports.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const TEMPLATES = '/dashboard/export-templates'
const UNKNOWN = '00000000-0000-7000-8000-000000000000'
const HOT = { source: 'HOT', format: 'JSONL' }
const refusalOf = ({ status, json }: TestResponse) => [status, json.code]

async function save(
  member: Member,
  body: object = {},
  name = 'A template',
): Promise<TestResponse['json']> {
  const response = await member.call('POST', TEMPLATES, {
    body: { name, body: { ...HOT, ...body } },
  })
  assert.equal(response.status, 201, response.text)
  return response.json
}

const run = (member: Member, id: string) => member.call('POST', `${TEMPLATES}/${id}/run`)
const namesOf = async (member: Member) =>
  (await member.call('GET', TEMPLATES)).json.templates.map(({ name }: { name: string }) => name)

/** The actions of the events in its export. */
async function actionsOf(member: Member, id: string): Promise<string[]> {
  const { status, json, text } = await run(member, id)
  assert.equal(status, 201, text)
  const { text: rows } = await (await openDashboardDownload(annals, member, json.id)).rest()
  return parseJsonl(rows).map(({ action }) => action)
}

test('a template creates the same kind of export again, with a moving range', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const filters = { range: '7d', workspaceId: production.id, text: 'LOGIN' }
  const body = { source: 'HOT_AND_ARCHIVED', format: 'CSV', filters, limit: 5 }
  const template = await save(admin, body, 'Weekly')
  assert.deepEqual(template.body, body)
  assert.deepEqual([template.workspaceId, template.isUsable], [production.id, true])
  for (const minutes of [0, 10]) {
    advance(minutes * 60_000)
    const { json } = await run(admin, template.id)
    assert.deepEqual(json.filters, {
      from: new Date(clock() - 7 * DAY_MS).toISOString(),
      to: new Date(clock()).toISOString(),
      workspaceId: production.id,
      text: 'LOGIN',
    })
    assert.deepEqual([json.format, json.rowLimit, json.createdBy.email], ['CSV', '5', admin.email])
    assert.equal(json.name, 'Weekly')
  }
  const month = await save(admin, { filters: { range: 'previousMonth' } }, 'Monthly')
  const { json: monthly } = await run(admin, month.id)
  assert.match(monthly.filters.from, /-01T00:00:00\.000Z$/)
  assert.match(monthly.filters.to, /-01T00:00:00\.000Z$/)
  const entries = await readAudit(annals, company)
  const requested = entries.filter(({ action }) => action === 'EXPORT_REQUESTED')
  assert.deepEqual(
    requested.map(({ metadata }) => metadata.templateId),
    [template.id, template.id, month.id],
  )
})

test('running a template exports events of the member’s own workspaces', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const analyst = await enroll(annals, company, 'ANALYST', staging)
  const query = { category: 'auth', text: 'log' }
  const { json: view } = await admin.call('POST', '/dashboard/explorer/views', {
    body: { name: 'v', workspaceId: null, visibility: 'WORKSPACE', query },
  })
  const wide = await save(admin, {}, 'wide')
  const byView = await save(admin, { savedExplorerViewId: view.id }, 'by view')
  const narrow = await save(admin, { filters: { workspaceId: production.id } }, 'narrow')
  assert.equal((await actionsOf(admin, wide.id)).length, 6)
  for (const { id } of [wide, byView]) {
    const actions = await actionsOf(analyst, id)
    assert(actions.length > 0)
    for (const action of actions) assert.match(action, /^staging/)
  }
  assert.deepEqual(await namesOf(analyst), ['by view', 'wide'])
  assert.deepEqual(refusalOf(await run(analyst, narrow.id)), [404, 'not_found'])
  const foreign = { name: 'x', body: { ...HOT, filters: { workspaceId: production.id } } }
  const refused = await analyst.call('POST', TEMPLATES, { body: foreign })
  assert.deepEqual(refusalOf(refused), [404, 'not_found'])
  await admin.call('PATCH', `/dashboard/explorer/views/${view.id}`, {
    body: { visibility: 'PRIVATE' },
  })
  const lost = await run(analyst, byView.id)
  assert.deepEqual(refusalOf(lost), [409, 'conflict'])
  assert.match(lost.json.error, /view.*Save the template again/)
  assert.equal((await actionsOf(admin, byView.id)).length, 4)
})

test('a template can be changed by its owner, an OWNER or an ADMIN, and a viewer cannot run it', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const owner = await enroll(annals, company, 'ANALYST', production)
  const other = await enroll(annals, company, 'ANALYST', production)
  const viewer = await enroll(annals, company, 'VIEWER', production)
  const { id } = await save(owner)
  const path = `${TEMPLATES}/${id}`
  for (const member of [other, viewer]) {
    assert.equal((await member.call('GET', TEMPLATES)).json.templates[0].mayChange, false)
    for (const response of [
      await member.call('PATCH', path, { body: { name: 'x' } }),
      await member.call('DELETE', path),
    ]) {
      assert.deepEqual(refusalOf(response), [403, 'insufficient_role'])
    }
  }
  assert.deepEqual(refusalOf(await run(viewer, id)), [403, 'insufficient_role'])
  const create = { body: { name: 'x', body: HOT } }
  assert.equal((await viewer.call('POST', TEMPLATES, create)).json.code, 'insufficient_role')
  assert.equal((await run(other, id)).status, 201)
  const body = { ...HOT, filters: { workspaceId: production.id } }
  const changed = await admin.call('PATCH', path, { body: { name: 'changed', body } })
  assert.deepEqual(
    [changed.json.name, changed.json.workspaceId, changed.json.owner.email],
    ['changed', production.id, owner.email],
  )
  assert.equal((await owner.call('DELETE', path)).status, 204)
  assert.equal((await owner.call('DELETE', path)).status, 404)
  const entries = await readAudit(annals, company)
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor.email]),
    [
      ['EXPORT_TEMPLATE_CREATED', owner.email],
      ['EXPORT_REQUESTED', other.email],
      ['EXPORT_TEMPLATE_CHANGED', admin.email],
      ['EXPORT_TEMPLATE_DELETED', owner.email],
    ],
  )
})

test('a template of another company, an unknown one and an invalid id get the same response', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  const { id } = await save(admin)
  const stranger = await enroll(annals, await annals.createCompany(), 'OWNER')
  for (const named of [id, UNKNOWN, 'no-id']) {
    for (const { status, json } of [
      await run(stranger, named),
      await stranger.call('PATCH', `${TEMPLATES}/${named}`, { body: { name: 'x' } }),
      await stranger.call('DELETE', `${TEMPLATES}/${named}`),
    ]) {
      assert.deepEqual([status, json.error], [404, 'No such resource.'])
    }
  }
  assert.deepEqual(await namesOf(stranger), [])
  const free = await enroll(annals, await annals.createCompany({ plan: 'FREE' }), 'ADMIN')
  assert.deepEqual(refusalOf(await run(free, (await save(free)).id)), [403, 'plan_required'])
})

const LARGE_FILTERS = {
  not: Array.from({ length: 20 }, (_, nth) => `actorId:${nth}${'x'.repeat(250)}`),
}

test('rejects an invalid template before saving, and names the field', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  const cases: [change: object, path: string][] = [
    [{ source: 'ARCHIVED' }, '/body/filters/from'],
    [{ format: 'XML' }, '/body/format'],
    [{ filters: { range: '7d', from: '2026-01-01T00:00:00Z' } }, '/body/filters/range'],
    [{ filters: { severity: 'high' } }, '/body/filters/severity'],
    [{ filters: { actorId: 'x'.repeat(1_025) } }, '/body/filters/actorId'],
    [{ filters: LARGE_FILTERS }, '/body/filters'],
    [{ name: 'Named twice' }, '/body/name'],
    [{ extra: 1 }, '/body/extra'],
  ]
  for (const [change, path] of cases) {
    const body = { name: 'x', body: { ...HOT, ...change } }
    const { status, json, text } = await admin.call('POST', TEMPLATES, { body })
    assert.equal(status, 400, text)
    assert.equal(json.details[0].path, path, text)
  }
  const huge = { name: 'x', body: { ...HOT, filters: { text: 'x'.repeat(300_000) } } }
  const refused = await admin.call('POST', TEMPLATES, { body: huge })
  assert.deepEqual(refusalOf(refused), [413, 'payload_too_large'])
  const unknown = { name: 'x', body: { ...HOT, savedExplorerViewId: UNKNOWN } }
  const lost = await admin.call('POST', TEMPLATES, { body: unknown })
  assert.deepEqual(refusalOf(lost), [404, 'not_found'])
})

test('a template with fields unknown to this version is listed as unusable and cannot be run', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const { id } = await save(admin)
  const stored = JSON.stringify({ ...HOT, filters: { category: 'c', severity: 'high' } })
  await sql`update export_template set body = ${stored}::jsonb where id = ${id}`.execute(db)
  const [template] = (await admin.call('GET', TEMPLATES)).json.templates
  assert.deepEqual([template.isUsable, template.unusableFields], [false, ['filters.severity']])
  assert.deepEqual(template.body, { ...HOT, filters: { category: 'c' } })
  const refused = await run(admin, id)
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(refused.json.error, /filters\.severity.*Save it again/)
  assert.deepEqual((await admin.call('GET', '/dashboard/exports')).json.data, [])
  const again = await admin.call('PATCH', `${TEMPLATES}/${id}`, { body: { body: template.body } })
  assert.equal(again.json.isUsable, true)
  assert.equal((await run(admin, id)).status, 201)
})

test('a company can have 200 templates, and text that looks like a script stays text', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const name = HOSTILE.replaceAll('\u2028', ' ')
  const { id } = await save(admin, { filters: { category: HOSTILE } }, name)
  const [template] = (await admin.call('GET', TEMPLATES)).json.templates
  assert.deepEqual([template.name, template.body.filters.category], [name, HOSTILE])
  await sql`
    insert into export_template (company_id, id, owner_id, name, body, created_at, updated_at)
    select company_id, gen_random_uuid(), owner_id, name, body, created_at, updated_at
      from export_template, generate_series(1, ${COMPANY_BOUNDS.exportTemplatesMax - 2})
     where id = ${id}`.execute(db)
  const body = { name: 'one more', body: HOT }
  const responses = await Promise.all(
    Array.from({ length: 3 }, () => admin.call('POST', TEMPLATES, { body })),
  )
  assert.equal(responses.filter(({ status }) => status === 201).length, 1)
  const [refused] = responses.filter(({ status }) => status !== 201)
  assert(refused)
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(refused.json.error, /200 export templates/)
})

test('the list is empty and says why if the table of templates is missing', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  await withoutTable(annals, 'export_template', async () => {
    const { status, json, headers } = await admin.call('GET', TEMPLATES)
    assert.deepEqual([status, json], [200, { templates: [] }])
    assert.equal(headers.get('x-service-schema-drift'), 'export_template')
  })
})
