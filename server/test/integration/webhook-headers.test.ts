import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { assertId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type ReceivedRequest, startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'
import { ANY_DESTINATION } from '../harness/webhook/webhooks.ts'

const logLines: string[] = []
const logger = pino({ level: 'trace' }, { write: (line) => void logLines.push(line) })
const annals = await startTestApp({ env: ANY_DESTINATION, logger })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database

const TOKEN = 'Bearer 5f0c-not-for-anyone-else'
const HEADERS = { Authorization: TOKEN, 'X-Team': 'audit' }

type Tenant = CreatedCompany

async function create(tenant: Tenant, body: object): Promise<TestResponse> {
  const path = `/v1/workspaces/${tenant.workspace.id}/webhooks`
  return await annals.call('POST', path, { key: tenant.companyKey, body })
}

async function made(tenant: Tenant, body: object): Promise<WebhookId> {
  const { status, json, text } = await create(tenant, body)
  assert.equal(status, 201, text)
  return assertId(json.id)
}

const call = (tenant: Tenant, method: string, path: string, body?: object) =>
  annals.call(method, `/v1/webhooks/${path}`, { key: tenant.companyKey, ...(body && { body }) })

/** The company's own audit log, newest first. */
async function readAudit({ company, companyKey: key }: Tenant) {
  const [row] = await query(
    connection,
    `select id from workspace where company_id = '${company.id}' and kind = 'SYSTEM'`,
  )
  const path = `/v1/events?workspaceId=${String(row?.['id'])}`
  return (await annals.call('GET', path, { key })).json.data
}

test('extra headers arrive with every delivery, with tests and with redeliveries', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const id = await made(tenant, { url: receiver.url, headers: HEADERS })
  await sendEvents(annals, tenant.workspaceKey, 2)
  assert.equal((await call(tenant, 'POST', `${id}/test`)).status, 202)
  await receiver.waitFor(3)
  const [delivery] = await waitForDeliveries(annals, id, 3, 'SUCCEEDED')
  const again = await call(tenant, 'POST', `${id}/deliveries/${delivery?.id}/redeliver`)
  assert.equal(again.status, 202, again.text)
  const requests = await receiver.waitFor(4)
  for (const { headers } of requests) {
    assert.deepEqual([headers['authorization'], headers['x-team']], [TOKEN, 'audit'])
    assert.match(headers['x-service-signature'] ?? '', /^v1=[0-9a-f]{64}$/)
  }
})

test('an update replaces all headers, an empty object removes them, and other updates keep them', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { json: webhook } = await create(tenant, { url: receiver.url, headers: HEADERS })
  assert.deepEqual(webhook.headerNames, ['Authorization', 'X-Team'])
  const namesAfter = async (body: object) =>
    (await call(tenant, 'PATCH', webhook.id, body)).json.headerNames
  assert.deepEqual(await namesAfter({ name: 'Other' }), ['Authorization', 'X-Team'])
  assert.deepEqual(await namesAfter({ url: `${receiver.url}/other` }), ['Authorization', 'X-Team'])
  assert.deepEqual(await namesAfter({ headers: { 'x-key': 'k' } }), ['x-key'])
  await sendEvents(annals, tenant.workspaceKey, 1)
  const [request] = await receiver.waitFor(1)
  assert.deepEqual([request?.headers['x-key'], request?.headers['authorization']], ['k', undefined])
  assert.deepEqual(await namesAfter({ headers: {} }), [])
  await sendEvents(annals, tenant.workspaceKey, 1)
  const [, second] = await receiver.waitFor(2)
  assert.equal(second?.headers['x-key'], undefined)
})

test('a URL with a new origin drops the headers, unless the same request sends them', async () => {
  await using receiver = await startReceiver()
  await using other = await startReceiver()
  const tenant = await annals.createCompany()
  const id = await made(tenant, { url: receiver.url, headers: HEADERS })
  const kept = await call(tenant, 'PATCH', id, { url: other.url, headers: HEADERS })
  assert.deepEqual(kept.json.headerNames, ['Authorization', 'X-Team'])
  const dropped = await call(tenant, 'PATCH', id, { url: receiver.url })
  assert.deepEqual([dropped.status, dropped.json.headerNames], [200, []])
  await sendEvents(annals, tenant.workspaceKey, 1)
  const [request] = await receiver.waitFor(1)
  assert.equal(request?.headers['authorization'], undefined)
  const [entry] = await readAudit(tenant)
  assert.deepEqual(
    [entry.action, entry.metadata.before.headerNames, entry.metadata.after.headerNames],
    ['WEBHOOK_CHANGED', ['Authorization', 'X-Team'], []],
  )
})

test('an update to the same values writes nothing', async () => {
  const tenant = await annals.createCompany()
  const settings = {
    url: 'http://127.0.0.1:9/hook',
    name: 'One',
    filter: { actions: ['user.*'], categories: ['auth'] },
    headers: HEADERS,
    projectId: tenant.project.id,
    secretLabel: 'first',
    events: ['AUDIT_EVENT_CREATED'],
  }
  const id = await made(tenant, settings)
  for (let times = 0; times < 3; times += 1) {
    const { status, text } = await call(tenant, 'PATCH', id, settings)
    assert.equal(status, 200, text)
    await sendEvents(annals, tenant.workspaceKey, 1)
  }
  const rows = await query(
    connection,
    `select project_since_seq::int as since, updated_at = created_at as "isFresh"
       from webhook where id = '${id}'`,
  )
  assert.deepEqual(rows, [{ since: 0, isFresh: true }])
  assert.deepEqual(
    (await readAudit(tenant)).map(({ action }: { action: string }) => action),
    ['WEBHOOK_CREATED'],
  )
})

test('refuses headers that break a rule, and never repeats their values', async () => {
  const tenant = await annals.createCompany()
  const url = 'http://127.0.0.1:9/hook'
  const id = await made(tenant, { url })
  const many = Object.fromEntries(Array.from({ length: 11 }, (_, nth) => [`x-${nth}`, 'v']))
  const faults: [headers: unknown, path: string][] = [
    [null, '/headers'],
    [['x-a'], '/headers'],
    ['x-a: 1', '/headers'],
    [many, '/headers'],
    [{ ['x'.repeat(9_000)]: 'hush-hush' }, `/headers/${'x'.repeat(491)}…`],
    [{ 'x-a': 1 }, '/headers/x-a'],
    [{ 'x-a': null }, '/headers/x-a'],
    [{ 'x-a': '' }, '/headers/x-a'],
    [{ 'x-a': 'hush-hush\n' }, '/headers/x-a'],
    [{ 'x-a': 'hush-hush\tx' }, '/headers/x-a'],
    [{ 'x-a': 'hush-hush ' }, '/headers/x-a'],
    [{ 'x-a': ' hush-hush' }, '/headers/x-a'],
    [{ 'x-a': 'hush-hüsh' }, '/headers/x-a'],
    [{ 'x-a': 'hush-hush'.padEnd(1_025, 'x') }, '/headers/x-a'],
    [{ 'x-a': 'hush-hush', 'X-A': 'hush-hush' }, '/headers/X-A'],
    [{ '': 'hush-hush' }, '/headers/'],
    [{ 'x a': 'hush-hush' }, '/headers/x a'],
    [{ ['x'.repeat(65)]: 'hush-hush' }, `/headers/${'x'.repeat(65)}`],
    [{ Host: 'hush-hush' }, '/headers/Host'],
    [{ 'Content-Type': 'hush-hush' }, '/headers/Content-Type'],
    [{ 'webhook-id': 'hush-hush' }, '/headers/webhook-id'],
    [{ 'X-Service-Signature': 'hush-hush' }, '/headers/X-Service-Signature'],
  ]
  for (const [headers, path] of faults) {
    for (const response of [
      await create(tenant, { url, headers }),
      await call(tenant, 'PATCH', id, { headers }),
    ]) {
      const { status, json, text } = response
      assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(headers))
      assert.deepEqual(
        json.details.map((detail: { path: string }) => detail.path),
        [path],
        text,
      )
      assert(!text.includes('hush'), text)
    }
  }
  const longest = { ['x'.repeat(64)]: '~'.repeat(1_024) }
  const { status, text } = await create(tenant, { url, headers: longest })
  assert.equal(status, 201, text)
})

/** Echoes the request's head, as some receivers and gateways do in errors. */
const echo = ({ headers }: ReceivedRequest) => ({ status: 500, body: JSON.stringify(headers) })

async function excerptOf(tenant: Tenant, id: WebhookId, nth = 0): Promise<string> {
  const delivery = await eventually(async () => {
    const { json } = await call(tenant, 'GET', `${id}/deliveries?afterSequence=${nth}&limit=1`)
    assert.equal(json.data[0]?.status, 'RETRY_SCHEDULED')
    return json.data[0]
  })
  const { json } = await call(tenant, 'GET', `${id}/deliveries/${delivery.id}`)
  return json.attempts[0].excerpt
}

test('a receiver that echoes its headers does not reveal a value in the stored response', async () => {
  await using receiver = await startReceiver(echo)
  const tenant = await annals.createCompany()
  const quoted = 'a "quoted" token'
  const id = await made(tenant, {
    url: receiver.url,
    headers: { Authorization: TOKEN, 'X-Quoted': quoted },
  })
  await sendEvents(annals, tenant.workspaceKey, 1)
  const excerpt = JSON.parse(await excerptOf(tenant, id))
  assert.deepEqual([excerpt.authorization, excerpt['x-quoted']], ['***', '***'])
  assert.match(excerpt['x-service-signature'], /^v1=/)
})

test('a value in pieces, or cut at the end of the excerpt, is masked as well', async () => {
  const half = TOKEN.length / 2
  const start = 'HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n'
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  await using receiver = await startReceiver({
    misbehave: (socket) => {
      socket.write(start + chunk(`<${TOKEN.slice(0, half)}`))
      setImmediate(() => socket.write(`${chunk(`${TOKEN.slice(half)}>`)}0\r\n\r\n`))
    },
  })
  const tenant = await annals.createCompany()
  const id = await made(tenant, { url: receiver.url, headers: HEADERS })
  await sendEvents(annals, tenant.workspaceKey, 1)
  assert.equal(await excerptOf(tenant, id), '<***>')
  const before = 'x'.repeat(16 * 1_024 - half)
  receiver.respondWith({ status: 500, body: `${before}${TOKEN}` })
  await sendEvents(annals, tenant.workspaceKey, 1)
  assert.equal(await excerptOf(tenant, id, 1), `${before}***`)
})

test('values appear in no log line, response, audit entry or column', async () => {
  await using receiver = await startReceiver(echo)
  const tenant = await annals.createCompany()
  const { companyKey: key, workspace, workspaceKey } = tenant
  const { text: created } = await create(tenant, { url: receiver.url, headers: HEADERS })
  const id: WebhookId = JSON.parse(created).id
  await sendEvents(annals, workspaceKey, 1)
  await excerptOf(tenant, id)
  const list = await annals.call('GET', `/v1/workspaces/${workspace.id}/webhooks`, { key })
  const get = await call(tenant, 'GET', id)
  const changed = await call(tenant, 'PATCH', id, { headers: { ...HEADERS, 'x-b': 'b' } })
  const moved = await call(tenant, 'PATCH', id, { url: 'http://127.0.0.1:9/', headers: HEADERS })
  const deliveries = await call(tenant, 'GET', `${id}/deliveries`)
  const tables = ['webhook', 'webhook_delivery', 'event']
  const rows = await Promise.all(
    tables.map((name) => query(connection, `select t::text from ${name} t`)),
  )
  const said = [created, list, get, changed, moved, deliveries].map((one) =>
    typeof one === 'string' ? one : one.text,
  )
  const everything = JSON.stringify([said, rows, await readAudit(tenant), logLines])
  assert(everything.includes('Authorization'))
  const secret = TOKEN.split(' ')[1] ?? ''
  for (const form of [secret, Buffer.from(secret).toString('hex')]) {
    assert(!everything.includes(form), form)
  }
})

test('a deleted webhook keeps no headers', async () => {
  const tenant = await annals.createCompany()
  const id = await made(tenant, { url: 'http://127.0.0.1:9/hook', headers: HEADERS })
  assert.equal((await call(tenant, 'DELETE', id)).status, 204)
  const rows = await query(
    connection,
    `select from webhook where id = '${id}' and (headers is not null or header_names <> '{}')`,
  )
  assert.deepEqual(rows, [])
})

test('headers that this node can’t decrypt fail the attempt, and an update replaces them', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const id = await made(tenant, { url: receiver.url, headers: HEADERS })
  await query(connection, `update webhook set headers = '\\x00' where id = '${id}'`)
  await sendEvents(annals, tenant.workspaceKey, 1)
  await waitForDeliveries(annals, id, 1, 'RETRY_SCHEDULED')
  assert.equal(receiver.requestCount, 0)
  const { status } = await call(tenant, 'PATCH', id, { headers: HEADERS })
  assert.equal(status, 200)
  await sendEvents(annals, tenant.workspaceKey, 1)
  const [request] = await receiver.waitFor(1)
  assert.equal(request?.headers['authorization'], TOKEN)
})
