import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { openapiTexts } from '../../tools/print-openapi.ts'
import { assertDocumented, walk } from '../contract/driver.ts'
import { manualClock } from '../harness/timing/clock.ts'
import {
  enroll,
  createWithTwoWorkspaces,
  HOSTILE,
  openDashboardDownload,
  withoutTable,
} from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import {
  download,
  makeExport,
  parseCsv,
  parseJsonl,
  storeEvents,
} from '../harness/export/exports.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const EXPORTS = '/dashboard/exports'
const UNKNOWN = '00000000-0000-7000-8000-000000000000'
const refusalOf = ({ status, json }: TestResponse) => [status, json.code]

async function make(member: Member, options: object = {}): Promise<TestResponse['json']> {
  const body = { source: 'HOT', format: 'JSONL', ...options }
  const response = await member.call('POST', EXPORTS, { body })
  assert.equal(response.status, 201, response.text)
  return response.json
}

async function save(member: Member, view: object): Promise<string> {
  const body = { name: 'A view', workspaceId: null, visibility: 'PRIVATE', query: {}, ...view }
  const response = await member.call('POST', '/dashboard/explorer/views', { body })
  assert.equal(response.status, 201, response.text)
  return response.json.id
}

async function take(member: Member, jobId: string) {
  const opened = await openDashboardDownload(annals, member, jobId)
  return await opened.rest()
}

/** The actions of the events in the export. */
async function actionsOf(member: Member, options: object = {}): Promise<string[]> {
  const { id } = await make(member, options)
  return parseJsonl((await take(member, id)).text).map(({ action }) => action)
}

const idsIn = ({ json }: Pick<TestResponse, 'json'>): string[] =>
  json.data.map(({ id }: { id: string }) => id)

test('an export is created, downloaded and recorded, with the SHA-256 of the received bytes', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const analyst = await enroll(annals, company, 'ANALYST', ...company.workspaces)
  const job = await make(analyst, { format: 'CSV', filters: { category: 'auth' }, limit: 3 })
  assert.deepEqual(job.createdBy, { kind: 'MEMBER', email: analyst.email })
  assert.deepEqual([job.status, job.rowLimit, job.filters], ['PENDING', '3', { category: 'auth' }])
  const received = await take(analyst, job.id)
  assert.equal(parseCsv(received.text).length, 4)
  assert.equal(received.trailers['x-row-count'], '3')
  assert.equal(received.trailers['x-content-sha256'], received.sha256)
  assert.match(
    received.headers['content-disposition'] ?? '',
    /^attachment; filename="[a-z0-9-]+-2-workspaces-until-[0-9TZ-]+\.csv"; /,
  )
  const { json: done } = await analyst.call('GET', `${EXPORTS}/${job.id}`)
  assert.deepEqual(
    [done.status, done.sha256, done.bytes, done.truncated],
    ['SUCCEEDED', received.sha256, String(received.body.length), true],
  )
  const { json: again } = await analyst.call('POST', `${EXPORTS}/${job.id}/rerun`)
  assert.deepEqual([again.rerunOf, again.createdBy.email], [job.id, analyst.email])
  const canceled = await analyst.call('POST', `${EXPORTS}/${again.id}/cancel`)
  assert.deepEqual([canceled.json.status, canceled.json.errorCode], ['CANCELED', 'canceled'])
  await analyst.call('POST', `${EXPORTS}/${again.id}/cancel`)
  assert.deepEqual(refusalOf(await analyst.call('POST', `${EXPORTS}/${job.id}/cancel`)), [
    409,
    'conflict',
  ])
  const entries = await readAudit(annals, company)
  assert.deepEqual(
    entries.map(({ action, resource }) => [action, resource.id]),
    [
      ['EXPORT_REQUESTED', job.id],
      ['EXPORT_DOWNLOAD_STARTED', job.id],
      ['EXPORT_DOWNLOADED', job.id],
      ['EXPORT_RERUN', again.id],
      ['EXPORT_CANCELED', again.id],
    ],
  )
  for (const { actor } of entries) assert.equal(actor.email, analyst.email)
  assert.deepEqual(entries[0]?.metadata.filters, { category: 'auth' })
  const { rows, bytes, sha256 } = entries[2]?.metadata ?? {}
  assert.deepEqual([rows, bytes, sha256], [3, received.body.length, received.sha256])
})

test('an export of a view applies its query, and explicit fields override it one by one', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  advance(1)
  const query = { range: '24h', text: 'LOG', category: 'auth', columns: ['time'] }
  const viewId = await save(admin, { workspaceId: production.id, query })
  const ofView = await make(admin, { savedExplorerViewId: viewId })
  assert.deepEqual(ofView.filters, {
    from: new Date(clock() - DAY_MS).toISOString(),
    to: new Date(clock()).toISOString(),
    workspaceId: production.id,
    category: 'auth',
    text: 'LOG',
  })
  const { text } = await take(admin, ofView.id)
  const { json: shown } = await admin.call(
    'GET',
    `/dashboard/events?workspaceId=${production.id}&category=auth&text=log`,
  )
  const ids = parseJsonl(text).map(({ id }) => id)
  assert.equal(ids.length, 2)
  assert.deepEqual(new Set(ids), new Set(idsIn({ json: shown })))
  const won = { savedExplorerViewId: viewId, filters: { text: 'out' } }
  assert.deepEqual(await actionsOf(admin, won), ['production.logout'])
  const elsewhere = { ...won, filters: { workspaceId: staging.id, actorEmail: 'ann@example.com' } }
  assert.deepEqual(await actionsOf(admin, elsewhere), ['staging.login'])
  const from = new Date(clock() - 10 * DAY_MS).toISOString()
  const longer = await make(admin, { savedExplorerViewId: viewId, filters: { from } })
  assert.deepEqual([longer.filters.from, longer.filters.to], [from, ofView.filters.to])
  const month = await make(admin, {
    source: 'HOT_AND_ARCHIVED',
    filters: { range: 'previousMonth', workspaceId: production.id },
  })
  assert.match(month.filters.to, /-01T00:00:00\.000Z$/)
  const requested = (await readAudit(annals, company)).find(
    ({ resource }) => resource.id === ofView.id,
  )
  assert.equal(requested?.metadata.viewId, viewId)
  assert.equal(requested?.metadata.filters.text, 'LOG')
})

test('a company key sees an export of the dashboard with its text filter, and can download it', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const filters = { workspaceId: production.id, text: 'Invoice', traceId: 'A'.repeat(32) }
  const { id } = await make(admin, { filters })
  const shown = await annals.call('GET', `/v1/exports/${id}`, { key: company.companyKey })
  const getExport = walk(JSON.parse((await openapiTexts()).v1)).find(
    ({ operationId }) => operationId === 'getExport',
  )
  assert(getExport)
  assertDocumented(getExport, shown)
  const job = shown.json
  assert.deepEqual(job.filters, { ...filters, traceId: 'a'.repeat(32) })
  assert.equal(job.createdBy, undefined)
  const plain = await make(admin, { filters: { text: 'invoice' } })
  const received = await download(annals, company.companyKey, plain.id)
  assert.equal(parseJsonl(received.text).length, 2)
  const again = await annals.call('POST', `/v1/exports/${plain.id}/rerun`, {
    key: company.companyKey,
  })
  const twin = await download(annals, company.companyKey, again.json.jobId)
  assert.equal(twin.sha256, received.sha256)
  const { json: seen } = await admin.call('GET', `${EXPORTS}/${again.json.jobId}`)
  assert.deepEqual(seen.createdBy, { kind: 'KEY', email: null })
  const other = await annals.call('GET', `/v1/exports/${id}`, { key: company.workspaceKey })
  assert.equal(other.status, 404)
})

test('an export by an analyst never contains events of other workspaces', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const analyst = await enroll(annals, company, 'ANALYST', staging)
  const viewId = await save(admin, { visibility: 'WORKSPACE', query: { category: 'auth' } })
  const hidden = await save(admin, { visibility: 'WORKSPACE', workspaceId: production.id })
  assert.deepEqual(await actionsOf(analyst, { savedExplorerViewId: viewId }), [
    'staging.login',
    'staging.logout',
  ])
  for (const action of await actionsOf(analyst)) assert.match(action, /^staging/)
  const system = await sql<{ id: string }>`
    select id from workspace where company_id = ${company.company.id} and kind = 'SYSTEM'`.execute(
    db,
  )
  const refused = [
    { filters: { workspaceId: production.id } },
    { filters: { workspaceId: system.rows[0]?.id } },
    { filters: { workspaceId: UNKNOWN } },
    { savedExplorerViewId: hidden },
    { savedExplorerViewId: viewId, filters: { workspaceId: production.id } },
  ]
  for (const options of refused) {
    for (const path of [EXPORTS, `${EXPORTS}/preflight`]) {
      const body = { source: 'HOT', format: 'JSONL', ...options }
      const { status, json } = await analyst.call('POST', path, { body })
      assert.deepEqual([status, json.error], [404, 'No such resource.'], JSON.stringify(options))
    }
  }
  const own = { filters: { workspaceId: system.rows[0]?.id, category: 'dashboard' } }
  assert((await actionsOf(admin, own)).includes('EXPORT_REQUESTED'))
  for (const action of await actionsOf(admin)) assert.match(action, /^(staging|production)/)
})

test('a view that is private, unknown or of another company gets a 404', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const [admin, other] = [
    await enroll(annals, company, 'ADMIN'),
    await enroll(annals, company, 'ADMIN'),
  ]
  const stranger = await enroll(annals, await annals.createCompany(), 'OWNER')
  const secret = await save(admin, {})
  const shared = await save(admin, { visibility: 'WORKSPACE' })
  for (const [member, viewId] of [
    [other, secret],
    [stranger, shared],
    [stranger, UNKNOWN],
  ] as const) {
    const body = { source: 'HOT', format: 'JSONL', savedExplorerViewId: viewId }
    const { status, json } = await member.call('POST', EXPORTS, { body })
    assert.deepEqual([status, json.error], [404, 'No such resource.'])
  }
})

test('a view that this version cannot read is not exported without its filters', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const viewId = await save(admin, { query: { category: 'auth' } })
  await sql`update explorer_view set query = '{"severity":"high"}' where id = ${viewId}`.execute(db)
  const body = { source: 'HOT', format: 'JSONL', savedExplorerViewId: viewId }
  const refused = await admin.call('POST', EXPORTS, { body })
  assert.deepEqual(refusalOf(refused), [409, 'conflict'])
  assert.match(refused.json.error, /severity/)
})

test('members see exports of their workspaces, and company-wide ones only with access to the company', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const analyst = await enroll(annals, company, 'ANALYST', production)
  const viewer = await enroll(annals, company, 'VIEWER', production)
  const unassigned = await enroll(annals, company, 'VIEWER')
  const wide = await make(admin)
  const quiet = await make(admin, { filters: { from: '2100-01-01T00:00:00Z' } })
  const named = await make(admin, { filters: { workspaceId: production.id } })
  const elsewhere = await make(admin, { filters: { workspaceId: staging.id } })
  const his = await make(analyst)
  const byKey = await makeExport(annals, production.workspaceKey)
  const byOther = await makeExport(annals, staging.workspaceKey)
  const list = (member: Member) => member.call('GET', EXPORTS)
  assert.deepEqual(
    new Set(idsIn(await list(admin))),
    new Set([byOther, byKey, his.id, elsewhere.id, named.id, quiet.id, wide.id]),
  )
  for (const member of [analyst, viewer]) {
    assert.deepEqual(new Set(idsIn(await list(member))), new Set([byKey, his.id, named.id]))
    for (const id of [wide.id, quiet.id, elsewhere.id, byOther, UNKNOWN, 'no-id']) {
      const { status, json } = await member.call('GET', `${EXPORTS}/${id}`)
      assert.deepEqual([status, json.error], [404, 'No such resource.'])
    }
  }
  assert.deepEqual(idsIn(await list(unassigned)), [])
  const stranger = await enroll(annals, await annals.createCompany(), 'OWNER')
  assert.deepEqual(idsIn(await list(stranger)), [])
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/download'],
    ['GET', '/evidence-pack'],
    ['POST', '/rerun'],
    ['POST', '/cancel'],
  ] as const) {
    const { status, json } = await stranger.call(method, `${EXPORTS}/${wide.id}${path}`)
    assert.deepEqual([status, json.error], [404, 'No such resource.'])
  }
  const both = await enroll(annals, company, 'ANALYST', production, staging)
  const two = await make(both)
  assert.equal((await both.call('GET', `${EXPORTS}/${two.id}`)).json.workspaceIds.length, 2)
  await sql`delete from user_workspace where user_id = ${both.userId} and workspace_id = ${staging.id}`.execute(
    db,
  )
  assert.equal((await both.call('GET', `${EXPORTS}/${two.id}`)).status, 404)
  assert.equal((await take(admin, byKey)).status, 200)
})

test('a viewer can see exports but not create them', async () => {
  const { company, production } = await createWithTwoWorkspaces(annals)
  const analyst = await enroll(annals, company, 'ANALYST', production)
  const viewer = await enroll(annals, company, 'VIEWER', production)
  const { id } = await make(analyst)
  assert.equal((await viewer.call('GET', `${EXPORTS}/${id}`)).json.createdBy.email, analyst.email)
  assert.equal((await viewer.call('GET', `${EXPORTS}/capabilities`)).status, 200)
  const body = { source: 'HOT', format: 'JSONL' }
  for (const response of [
    await viewer.call('POST', EXPORTS, { body }),
    await viewer.call('POST', `${EXPORTS}/preflight`, { body }),
    await viewer.call('GET', `${EXPORTS}/${id}/download`),
    await viewer.call('POST', `${EXPORTS}/${id}/rerun`),
    await viewer.call('POST', `${EXPORTS}/${id}/cancel`),
  ]) {
    assert.deepEqual(refusalOf(response), [403, 'insufficient_role'])
  }
  assert.equal((await analyst.call('GET', `${EXPORTS}/${id}`)).json.status, 'PENDING')
})

test('exports of a workspace are those created for it and those that contain its rows', async () => {
  const { company, production, staging } = await createWithTwoWorkspaces(annals)
  const admin = await enroll(annals, company, 'ADMIN')
  const analyst = await enroll(annals, company, 'ANALYST', staging)
  const ofProduction = await make(admin, { filters: { workspaceId: production.id } })
  advance(1)
  const ofStaging = await make(admin, { filters: { workspaceId: staging.id } })
  advance(1)
  const ofBoth = await make(admin)
  const list = (member: Member, id: string, more = '') =>
    member.call('GET', `${EXPORTS}?workspaceId=${id}${more}`)
  assert.deepEqual(idsIn(await list(admin, production.id)), [ofBoth.id, ofProduction.id])
  assert.deepEqual(idsIn(await list(admin, staging.id)), [ofBoth.id, ofStaging.id])
  assert.deepEqual(idsIn(await list(analyst, staging.id)), [ofStaging.id])
  assert.deepEqual(refusalOf(await list(analyst, production.id)), [404, 'not_found'])
  assert.deepEqual(refusalOf(await list(admin, UNKNOWN)), [404, 'not_found'])
  const empty = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const owner = await enroll(annals, empty, 'OWNER')
  const ofNothing = await make(owner)
  for (const { id } of empty.workspaces) {
    assert.deepEqual(idsIn(await list(owner, id)), [ofNothing.id])
  }
  const first = await list(admin, production.id, '&limit=1')
  const cursor = `&cursor=${first.json.nextCursor}`
  assert.deepEqual(idsIn(await list(admin, production.id, `&limit=1${cursor}`)), [ofProduction.id])
  for (const response of [
    await list(admin, staging.id, cursor),
    await admin.call('GET', `${EXPORTS}?${cursor.slice(1)}`),
  ]) {
    assert.deepEqual(refusalOf(response), [400, 'invalid_cursor'])
  }
})

test('exports are paged, and a cursor belongs to its member and status', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const other = await enroll(annals, company, 'ADMIN')
  const made: string[] = []
  for (let nth = 0; nth < 5; nth += 1) {
    made.unshift((await make(admin)).id)
    advance(1_000)
  }
  const first = await admin.call('GET', `${EXPORTS}?limit=2`)
  const second = await admin.call('GET', `${EXPORTS}?limit=2&cursor=${first.json.nextCursor}`)
  const third = await admin.call('GET', `${EXPORTS}?limit=2&cursor=${second.json.nextCursor}`)
  assert.deepEqual([first, second, third].flatMap(idsIn), made)
  assert.equal(third.json.nextCursor, null)
  const cursor = `cursor=${first.json.nextCursor}`
  for (const response of [
    await other.call('GET', `${EXPORTS}?${cursor}`),
    await admin.call('GET', `${EXPORTS}?${cursor}&status=PENDING`),
  ]) {
    assert.deepEqual(refusalOf(response), [400, 'invalid_cursor'])
  }
  const byKey = await annals.call('GET', `/v1/exports?${cursor}`, { key: company.companyKey })
  assert.deepEqual(refusalOf(byKey), [400, 'invalid_cursor'])
  await admin.call('POST', `${EXPORTS}/${made[0]}/cancel`)
  assert.deepEqual(idsIn(await admin.call('GET', `${EXPORTS}?status=CANCELED`)), [made[0]])
  for (const query of ['limit=0', 'limit=201', 'status=DONE', 'x=1']) {
    assert.equal((await admin.call('GET', `${EXPORTS}?${query}`)).json.code, 'invalid_request')
  }
})

const LARGE_FILTERS = {
  not: Array.from({ length: 20 }, (_, nth) => `actorId:${nth}${'x'.repeat(250)}`),
}

test('rejects invalid requests and names the field', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  const at = '2026-01-01T00:00:00Z'
  const cases: [change: object, path: string][] = [
    [{ source: 'ARCHIVED' }, '/filters/from'],
    [{ source: 'ARCHIVED', filters: { from: at } }, '/filters/to'],
    [{ filters: { from: at, to: at } }, '/filters/from'],
    [{ filters: { range: '7d', to: at } }, '/filters/range'],
    [{ filters: { range: '2y' } }, '/filters/range'],
    [{ filters: { traceId: 'x' } }, '/filters/traceId'],
    [{ filters: { severity: 'high' } }, '/filters/severity'],
    [{ filters: LARGE_FILTERS }, '/filters'],
    [{ savedExplorerViewId: 'x' }, '/savedExplorerViewId'],
    [{ limit: 0 }, '/limit'],
    [{ extra: 1 }, '/extra'],
  ]
  for (const [change, path] of cases) {
    const body = { source: 'HOT', format: 'JSONL', ...change }
    const { status, json, text } = await admin.call('POST', EXPORTS, { body })
    assert.equal(status, 400, text)
    assert.equal(json.details[0].path, path, text)
  }
})

test('returns text that looks like a script or a formula unchanged', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  await storeEvents(annals, company.workspaceKey, [{ category: HOSTILE, action: HOSTILE }])
  const { id, filters } = await make(admin, { filters: { category: HOSTILE, text: '<SCRIPT>' } })
  assert.equal(filters.category, HOSTILE)
  const received = await take(admin, id)
  assert.equal(received.headers['content-type'], 'application/x-ndjson')
  assert.equal(received.headers['x-content-type-options'], 'nosniff')
  assert.equal(parseJsonl(received.text)[0].action, HOSTILE)
  const list = await admin.call('GET', EXPORTS)
  assert.equal(list.json.data[0].filters.category, HOSTILE)
})

test('the preflight returns rows, bytes and whether a browser can download it', async () => {
  const { company } = await createWithTwoWorkspaces(annals)
  const analyst = await enroll(annals, company, 'ANALYST', company.workspace)
  const body = { source: 'HOT', format: 'JSONL', filters: { text: 'log' } }
  const { json } = await analyst.call('POST', `${EXPORTS}/preflight`, { body })
  assert.deepEqual([json.rows, json.isEstimate, json.fitsDownload], ['2', false, true])
  assert.deepEqual(await readAudit(annals, company), [])
})

test('a plan without exports says so, and the capabilities are tested', async () => {
  const free = await enroll(annals, await annals.createCompany({ plan: 'FREE' }), 'ADMIN')
  const { json: none } = await free.call('GET', `${EXPORTS}/capabilities`)
  assert.deepEqual([none.filteredHot, none.rowLimit], [false, null])
  assert.match(none.reason, /FREE/)
  for (const path of [EXPORTS, `${EXPORTS}/preflight`]) {
    const body = { source: 'HOT', format: 'JSONL' }
    assert.deepEqual(refusalOf(await free.call('POST', path, { body })), [403, 'plan_required'])
  }
  const admin = await enroll(annals, await annals.createCompany({ plan: 'PRO' }), 'ADMIN')
  const works = {
    filteredHot: true,
    reason: null,
    sources: ['HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED'],
    formats: ['JSONL', 'CSV'],
    rowLimit: '1000000',
    downloadBytesMax: String(100 * 1_024 * 1_024),
    evidencePacks: true,
  }
  const readCapabilities = async () => (await admin.call('GET', `${EXPORTS}/capabilities`)).json
  assert.deepEqual(await readCapabilities(), works)
  await withoutTable(annals, 'event', async () => {
    assert.deepEqual(await readCapabilities(), works, 'cached for a few seconds')
    advance(5_000)
    const broken = await readCapabilities()
    assert.equal(broken.filteredHot, false)
    assert.match(broken.reason, /^Filtered events could not be read/)
  })
  advance(5_000)
  assert.deepEqual(await readCapabilities(), works)
})

test('the list is empty and says why if the table of exports is missing', async () => {
  const admin = await enroll(annals, await annals.createCompany(), 'ADMIN')
  await withoutTable(annals, 'export_job', async () => {
    const { status, json, headers } = await admin.call('GET', EXPORTS)
    assert.deepEqual([status, json], [200, { data: [], nextCursor: null }])
    assert.equal(headers.get('x-service-schema-drift'), 'export_job')
  })
})
