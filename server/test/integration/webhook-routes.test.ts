import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { OPEN_PER_WEBHOOK_MAX } from '../../src/outlet/webhook/delivery/delivery-store.ts'
import { newId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_WEBHOOK_DESTINATIONS: 'any' } })
const strict = await startTestApp()
after(async () => {
  await strict[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})

/** Nothing listens there, and nothing leaves this machine. */
const URL_HERE = 'http://127.0.0.1:9/hook'

const pathOf = ({ workspace }: Pick<CreatedCompany, 'workspace'>) =>
  `/v1/workspaces/${workspace.id}/webhooks`

const create = (company: CreatedCompany, fields: object = {}) =>
  annals.call('POST', pathOf(company), {
    key: company.companyKey,
    body: { url: URL_HERE, ...fields },
  })

async function made(company: CreatedCompany, fields: object = {}): Promise<string> {
  const { status, json, text } = await create(company, fields)
  assert.equal(status, 201, text)
  return json.id
}

const list = async (company: CreatedCompany): Promise<TestResponse['json'][]> =>
  (await annals.call('GET', pathOf(company), { key: company.companyKey })).json.webhooks

const post = (company: CreatedCompany, path: string, body?: unknown) =>
  annals.call('POST', path, { key: company.companyKey, body })

/** Everything but the trace id and the time. */
const comparable = ({ status, text, headers, json }: TestResponse) => ({
  status,
  body: text.replaceAll(json.traceId, 'trace'),
  headers: [...headers].filter(([name]) => name !== 'x-trace-id' && name !== 'date'),
})

const WINDOW = {
  from: new Date(Date.now() - 60_000).toISOString(),
  to: new Date(Date.now() + 60_000).toISOString(),
}

/** Every operation on one webhook: its request, and whether it checks the caller's address. */
const OPERATIONS: readonly [method: string, suffix: string, isGuarded: boolean, body?: unknown][] =
  [
    ['PATCH', '', true, { url: URL_HERE }],
    ['DELETE', '', true],
    ['POST', '/enable', true],
    ['POST', '/disable', true],
    ['POST', '/rotate-secret', true, {}],
    ['POST', '/finish-rotation', true],
    ['POST', '/test', true],
    ['POST', '/redeliver', true, WINDOW],
    ['GET', '/deliveries', false],
    ['GET', '/deliveries/DELIVERY', false],
    ['POST', '/deliveries/DELIVERY/redeliver', true],
  ]

test('a webhook is created with the fields of the contract, and listed with its status', async () => {
  const company = await annals.createCompany()
  const { status, json } = await create(company, { secretLabel: 'first' })
  assert.equal(status, 201)
  const { id, secret, createdAt, ...rest } = json
  assert.match(id, /^[0-9a-f-]{36}$/)
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  const fields = {
    name: null,
    url: URL_HERE,
    status: 'ENABLED',
    events: ['AUDIT_EVENT_CREATED'],
    projectId: null,
    filter: null,
    headerNames: [],
    secretLabel: 'first',
  }
  assert.deepEqual(rest, fields)
  assert.deepEqual(await list(company), [
    {
      id,
      ...fields,
      filteredCount: 0,
      disabledReason: null,
      nextSecretAt: null,
      lastSuccessAt: null,
      lastFailureAt: null,
      failureCount: 0,
      createdAt,
      updatedAt: createdAt,
    },
  ])
})

test('accepts a project id of the workspace in any case, and no other project', async () => {
  const company = await annals.createCompany()
  const other = await annals.createCompany()
  const taken = await create(company, { projectId: company.project.id.toUpperCase() })
  assert.deepEqual([taken.status, taken.json.projectId], [201, company.project.id])
  for (const projectId of [other.project.id, newId()]) {
    const { status, json } = await create(company, { projectId })
    assert.deepEqual([status, json.code], [400, 'unknown_project'])
    assert.deepEqual(json.details, [
      { path: '/projectId', message: 'is not a project of this workspace' },
    ])
  }
})

test('rejects invalid input, and creates nothing', async () => {
  const company = await annals.createCompany()
  const faults: [fields: object, path: string][] = [
    [{ url: undefined }, '/url'],
    [{ url: 'nowhere' }, '/url'],
    [{ url: ` ${URL_HERE}` }, '/url'],
    [{ url: 'http://127.0.0.1:9/a\tb' }, '/url'],
    [{ url: `${URL_HERE}/${'x'.repeat(2_048)}` }, '/url'],
    [{ url: 'http://user@127.0.0.1/' }, '/url'],
    [{ url: `${URL_HERE}#part` }, '/url'],
    [{ url: 'ftp://127.0.0.1/' }, '/url'],
    [{ events: [] }, '/events'],
    [{ events: ['AUDIT_EVENT_CREATED', 'AUDIT_EVENT_CREATED'] }, '/events'],
    [{ events: ['user.login'] }, '/events/0'],
    [{ events: 'AUDIT_EVENT_CREATED' }, '/events'],
    [{ projectId: 'billing' }, '/projectId'],
    [{ secretLabel: 'x'.repeat(65) }, '/secretLabel'],
    [{ secretLabel: 'a\0b' }, '/secretLabel'],
    [{ customSecret: 'x'.repeat(7) }, '/customSecret'],
    [{ customSecret: 'x'.repeat(257) }, '/customSecret'],
    [{ customSecret: 'with\0nothing' }, '/customSecret'],
    [{ customSecret: 'half of a pair \ud83d' }, '/customSecret'],
    [{ secret: 'not ours to give' }, '/secret'],
    [{ status: 'DISABLED' }, '/status'],
  ]
  for (const [fields, path] of faults) {
    const { status, json, text } = await create(company, fields)
    assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(fields))
    assert(
      json.details.some((detail: TestResponse['json']) => detail.path === path),
      text,
    )
  }
  assert.deepEqual(await list(company), [])
})

test('accepts input just within the limits', async () => {
  const company = await annals.createCompany()
  for (const fields of [
    { secretLabel: '' },
    { secretLabel: '🔑'.repeat(64) },
    { customSecret: '12345678' },
    { customSecret: '🔑'.repeat(256) },
    { projectId: null, events: ['AUDIT_EVENT_CREATED'] },
    { url: `${URL_HERE}/${'x'.repeat(2_048 - URL_HERE.length - 1)}` },
  ]) {
    const { status, json, text } = await create(company, fields)
    assert.equal(status, 201, text)
    if (fields.customSecret !== undefined) assert.equal(json.secret, fields.customSecret)
  }
})

test('checks follow the order of the contract: scope, address, plan, body, resource', async () => {
  const company = await annals.createCompany()
  const free = await annals.createCompany({ plan: 'FREE' })
  const stranger = await annals.createCompany({ plan: 'FREE', allowlist: ['192.0.2.0/24'] })
  const bad = { url: 'gopher://x' }
  const unknown = { url: URL_HERE, projectId: newId() }
  const cases: [key: string, path: string, body: unknown, code: string][] = [
    [stranger.workspaceKey, pathOf(company), bad, 'insufficient_scope'],
    [stranger.companyKey, pathOf(company), bad, 'ip_not_allowed'],
    [free.companyKey, pathOf(company), bad, 'plan_required'],
    [company.companyKey, pathOf(free), bad, 'invalid_request'],
    [company.companyKey, pathOf(free), unknown, 'not_found'],
    [company.companyKey, pathOf(company), unknown, 'unknown_project'],
  ]
  for (const [key, path, body, code] of cases) {
    const { json } = await annals.call('POST', path, { key, body })
    assert.equal(json.code, code)
  }
})

test('changes require an allowed address, reads do not, and both require a company key', async () => {
  const company = await annals.createCompany()
  const id = await made(company)
  const { json } = await post(company, `/v1/webhooks/${id}/test`)
  const away = await annals.createCompany({ allowlist: [] })
  for (const [method, suffix, isGuarded, body] of OPERATIONS) {
    const path = `/v1/webhooks/${id}${suffix.replace('DELIVERY', json.deliveryId)}`
    const about = `${method} ${suffix}`
    const outside = await annals.call(method, path, { key: away.companyKey, body })
    assert.equal(outside.json.code, isGuarded ? 'ip_not_allowed' : 'not_found', about)
    const workspace = await annals.call(method, path, { key: company.workspaceKey, body })
    assert.equal(workspace.json.code, 'insufficient_scope', about)
  }
  const listed = await annals.call('GET', pathOf(away), { key: away.companyKey })
  assert.deepEqual([listed.status, listed.json], [200, { webhooks: [] }])
})

test('an id that is unknown, malformed or of another tenant gets the same response in every operation', async () => {
  const [owner, stranger] = [await annals.createCompany(), await annals.createCompany()]
  const id = await made(owner)
  const own = await made(stranger)
  const { deliveryId } = (await post(owner, `/v1/webhooks/${id}/test`)).json
  const key = stranger.companyKey
  for (const [method, suffix, , body] of OPERATIONS) {
    const ask = (webhook: string, delivery: string) =>
      annals.call(method, `/v1/webhooks/${webhook}${suffix.replace('DELIVERY', delivery)}`, {
        key,
        body,
      })
    const unknown = comparable(await ask(newId(), newId()))
    assert.equal(unknown.status, 404)
    const others = [
      [id, deliveryId],
      ['any', 'any'],
      [`{${id}}`, deliveryId],
      [`${id}0`, 'x'],
    ]
    if (suffix.includes('DELIVERY')) others.push([own, deliveryId], [own, newId()], [own, 'any'])
    for (const [webhook = '', delivery = ''] of others) {
      assert.deepEqual(comparable(await ask(webhook, delivery)), unknown, `${method} ${suffix}`)
    }
  }
  for (const method of ['GET', 'POST']) {
    const body = method === 'POST' ? { url: URL_HERE } : undefined
    const ask = (workspace: string) =>
      annals.call(method, `/v1/workspaces/${workspace}/webhooks`, { key, body })
    const unknown = comparable(await ask(newId()))
    for (const workspace of [owner.workspace.id, 'any', '%00', '🔑']) {
      assert.deepEqual(comparable(await ask(workspace)), unknown)
    }
  }
  assert.deepEqual(
    (await list(owner)).map(({ status }) => status),
    ['ENABLED'],
  )
})

test('rejects the 51st webhook of a workspace, and a deletion makes room', async () => {
  const company = await annals.createCompany()
  const requests = Array.from({ length: COMPANY_BOUNDS.webhooksPerWorkspaceMax + 5 }, () =>
    create(company),
  )
  const responses = await Promise.all(requests)
  const refused = responses.filter(({ status }) => status !== 201)
  assert.deepEqual(
    refused.map(({ status, json }) => [status, json.code]),
    Array.from({ length: 5 }, () => [409, 'conflict']),
  )
  const [first] = await list(company)
  const key = company.companyKey
  assert.equal((await annals.call('DELETE', `/v1/webhooks/${first.id}`, { key })).status, 204)
  assert.equal((await create(company)).status, 201)
  assert.equal((await create(company)).status, 409)
})

test('in public mode, rejects every private destination without connecting to it', async () => {
  await using receiver = await startReceiver()
  const company = await strict.createCompany()
  const key = company.companyKey
  const { port } = new URL(receiver.url)
  const refusals: [url: string, fault: RegExp][] = [
    [receiver.url, /must be https/],
    [`https://127.0.0.1:${port}/`, /uses port \d+, but the allowed ports are 443/],
    ['https://127.0.0.1/', /is the address 127\.0\.0\.1, which is not public/],
    ['https://0x7f.1/', /is the address 127\.0\.0\.1, which is not public/],
    ['https://2130706433/', /is the address 127\.0\.0\.1, which is not public/],
    ['https://[::1]/', /is the address ::1, which is not public/],
    ['https://[::ffff:10.0.0.1]/', /which is not public/],
    ['https://169.254.169.254/latest/meta-data', /which is not public/],
    ['https://localhost/', /is on the host localhost, which is not a public name/],
    ['https://annals.internal/', /which is not a public name/],
  ]
  for (const [url, fault] of refusals) {
    const { status, json } = await strict.call('POST', pathOf(company), { key, body: { url } })
    assert.deepEqual([status, json.code], [400, 'invalid_request'], url)
    assert.equal(json.details.length, 1)
    assert.equal(json.details[0].path, '/url')
    assert.match(json.details[0].message, fault)
    assert(json.error.includes(json.details[0].message))
  }
  const body = { url: 'https://receiver.example/hook' }
  const good = await strict.call('POST', pathOf(company), { key, body })
  assert.equal(good.status, 201, 'a name is checked when the connection is opened')
  const change = { key, body: { url: receiver.url } }
  const changed = await strict.call('PATCH', `/v1/webhooks/${good.json.id}`, change)
  assert.deepEqual([changed.status, changed.json.details[0].path], [400, '/url'])
  assert.equal(receiver.connectionCount, 0)
})

test('a test of a webhook whose queue is full says so', async () => {
  const company = await annals.createCompany()
  const id = await made(company)
  await query(
    annals.database.connection,
    `update webhook set open_count = ${OPEN_PER_WEBHOOK_MAX} where id = '${id}'`,
  )
  const full = await post(company, `/v1/webhooks/${id}/test`)
  assert.deepEqual([full.status, full.json.code], [409, 'conflict'])
  assert.match(full.json.error, /limit of 100000 pending deliveries/)
  await post(company, `/v1/webhooks/${id}/disable`)
  const disabled = await post(company, `/v1/webhooks/${id}/test`)
  assert.match(disabled.json.error, /disabled/)
})

test('enabling and disabling are idempotent, and a disabled webhook says why', async () => {
  const company = await annals.createCompany()
  const id = await made(company)
  const bodies: unknown[] = [undefined, {}]
  for (const body of bodies) {
    const { status, json } = await post(company, `/v1/webhooks/${id}/disable`, body)
    assert.deepEqual([status, json], [200, { id, status: 'DISABLED' }])
  }
  const [disabled] = await list(company)
  assert.equal(disabled.status, 'DISABLED')
  assert.equal(disabled.disabledReason, 'Disabled through the API.')
  for (const body of bodies) {
    const { status, json } = await post(company, `/v1/webhooks/${id}/enable`, body)
    assert.deepEqual([status, json], [200, { id, status: 'ENABLED' }])
  }
  const [enabled] = await list(company)
  assert.deepEqual([enabled.status, enabled.disabledReason], ['ENABLED', null])
  assert(enabled.updatedAt >= disabled.updatedAt)
  for (const body of [{ reason: 'x' }, [], 1, null, 'text']) {
    const text = JSON.stringify(body)
    const key = company.companyKey
    const { json } = await annals.call('POST', `/v1/webhooks/${id}/disable`, { key, text })
    assert.equal(json.code, 'invalid_request', text)
  }
  assert.equal((await list(company))[0].status, 'ENABLED')
})

test('enabling ends pending deliveries, and sends no event that arrived meanwhile', async () => {
  await using receiver = await startReceiver({ status: 500 })
  const company = await annals.createCompany()
  const id = await made(company, { url: receiver.url })
  const send = (action: string) =>
    annals.call('POST', '/v1/events', {
      key: company.workspaceKey,
      body: { category: 'c', action },
    })
  const deliveries = async (): Promise<TestResponse['json'][]> => {
    const path = `/v1/webhooks/${id}/deliveries`
    return (await annals.call('GET', path, { key: company.companyKey })).json.data
  }
  await send('before')
  await eventually(async () => assert.equal((await deliveries())[0]?.status, 'RETRY_SCHEDULED'))
  await post(company, `/v1/webhooks/${id}/disable`)
  await send('meanwhile')
  const enabling = Array.from({ length: 3 }, () => post(company, `/v1/webhooks/${id}/enable`))
  await Promise.all(enabling)
  receiver.respondWith({})
  await send('after')
  const bodies = await eventually(() => {
    const [, ...later] = receiver.requests.map(({ body }) => JSON.parse(body.toString()).action)
    assert(later.includes('after'))
    return later
  })
  assert.deepEqual(bodies, ['after'])
  const [latest, ended, ...others] = await deliveries()
  assert.deepEqual([latest.sequence, ended.sequence, others], [2, 1, []])
  assert.deepEqual([ended.status, ended.nextAttemptAt], ['FAILED', null])
})

test('a change affects only the fields it names', async () => {
  const company = await annals.createCompany()
  const stranger = await annals.createCompany()
  const id = await made(company, { projectId: company.project.id, secretLabel: 'kept' })
  const change = (body: unknown) =>
    annals.call('PATCH', `/v1/webhooks/${id}`, { key: company.companyKey, body })
  const [before] = await list(company)
  const moved = await change({ url: `${URL_HERE}/new` })
  assert.equal(moved.status, 200)
  assert.deepEqual(moved.json, {
    ...before,
    url: `${URL_HERE}/new`,
    updatedAt: moved.json.updatedAt,
  })
  const widened = await change({ projectId: null, events: ['AUDIT_EVENT_CREATED'] })
  assert.deepEqual([widened.json.projectId, widened.json.url], [null, `${URL_HERE}/new`])
  const labeled = await change({ secretLabel: 'changed' })
  assert.deepEqual([labeled.json.secretLabel, labeled.json.projectId], ['changed', null])
  const unlabeled = await change({ secretLabel: null })
  assert.deepEqual([unlabeled.status, unlabeled.json.secretLabel], [200, null])
  assert.deepEqual(await list(company), [unlabeled.json])
  for (const [body, code] of [
    [{}, 'invalid_request'],
    [{ events: [] }, 'invalid_request'],
    [{ secretLabel: 'x'.repeat(65) }, 'invalid_request'],
    [{ secretLabel: 'a\0b' }, 'invalid_request'],
    [{ status: 'DISABLED' }, 'invalid_request'],
    [{ url: 'ftp://x' }, 'invalid_request'],
    [{ projectId: stranger.project.id }, 'unknown_project'],
  ] as const) {
    assert.equal((await change(body)).json.code, code, JSON.stringify(body))
  }
  assert.deepEqual(await list(company), [unlabeled.json])
})

test('a deleted webhook is gone everywhere, with its deliveries and its secret', async () => {
  const company = await annals.createCompany()
  const id = await made(company)
  const { deliveryId } = (await post(company, `/v1/webhooks/${id}/test`)).json
  const key = company.companyKey
  const deleted = await annals.call('DELETE', `/v1/webhooks/${id}`, { key })
  assert.deepEqual([deleted.status, deleted.text], [204, ''])
  assert.equal(deleted.headers.get('content-type'), null)
  assert.deepEqual(await list(company), [])
  for (const [method, suffix, , body] of OPERATIONS) {
    const path = `/v1/webhooks/${id}${suffix.replace('DELIVERY', deliveryId)}`
    const { status, json } = await annals.call(method, path, { key, body })
    assert.deepEqual([status, json.code], [404, 'not_found'], `${method} ${suffix}`)
  }
  const row = await annals.app.database.db
    .selectFrom('webhook')
    .select(['secret', 'next_secret'])
    .where('id', '=', id)
    .executeTakeFirst()
  // The sweeper may have been faster.
  if (row) assert.deepEqual([row.secret.length, row.next_secret], [0, null])
})
