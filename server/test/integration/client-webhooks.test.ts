import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AnnalsProcess, type Outcome } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { ANY_DESTINATION, makeWebhook, SECRET } from '../harness/webhook/webhooks.ts'

const service = await startTestApp({ env: ANY_DESTINATION })
after(() => service[Symbol.asyncDispose]())

const LISTEN = ['webhooks', 'listen', '--json']
const environment = (key: string) => ({ ANNALS_API_URL: service.url, ANNALS_API_KEY: key })
const LISTENING = /Listening on (http:\S+)\//

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field it expects
function linesOf({ stdout }: Outcome): any[] {
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

async function send(key: string, action: string): Promise<void> {
  const body = { category: 'auth', action }
  const { status } = await service.call('POST', '/v1/events', { key, body })
  assert.equal(status, 201)
}

async function listWebhooks(key: string) {
  const outcome = await runCommandInHost(['webhooks', 'list', '--json'], environment(key))
  assert.equal(outcome.code, 0, outcome.stderr)
  return linesOf(outcome)
}

test('listen creates a webhook, verifies what it sends, and deletes it at the end', async () => {
  const { workspaceKey, companyKey } = await service.createCompany()
  await using listen = new AnnalsProcess(LISTEN, environment(companyKey))
  const [, url] = await listen.printed(LISTENING, 'stderr')
  const [webhook, ...others] = await listWebhooks(companyKey)
  assert.deepEqual([webhook.name, webhook.url, others], ['annals webhooks listen', `${url}/`, []])
  await send(workspaceKey, 'user.login')
  await listen.printed(/user\.login/)
  const trigger = await runCommandInHost(['webhooks', 'trigger', '--json'], environment(companyKey))
  assert.equal(trigger.code, 0, trigger.stderr)
  const [delivery] = linesOf(trigger)
  assert.deepEqual(
    [delivery.webhookId, delivery.status, delivery.responseStatus, delivery.isTest],
    [webhook.id, 'SUCCEEDED', 200, true],
  )
  listen.signal('SIGINT')
  const outcome = await listen.exited
  assert.equal(outcome.code, 0, outcome.stderr)
  const valid = { standard: 'valid', service: 'valid' }
  assert.deepEqual(
    linesOf(outcome).map(({ sequence, event, signatures, status, isReplayed }) => [
      sequence,
      event.action,
      signatures,
      status,
      isReplayed,
    ]),
    [
      [1, 'user.login', valid, 200, false],
      [2, 'webhook.test', valid, 200, false],
    ],
  )
  assert(!outcome.stderr.includes(companyKey))
  assert.deepEqual(await listWebhooks(companyKey), [])
})

test('listen refuses requests that are not signed, too large or not deliveries', async () => {
  const { companyKey } = await service.createCompany()
  await using listen = new AnnalsProcess(LISTEN, environment(companyKey))
  const [, url = ''] = await listen.printed(LISTENING, 'stderr')
  const forged = { 'webhook-signature': 'v1,AAAA', 'x-service-signature': `v1=${'0'.repeat(64)}` }
  const body = '{"id":"x","action":"forged"}'
  const status = async (init: RequestInit) => (await fetch(url, init)).status
  assert.equal(await status({ method: 'POST', body }), 401)
  assert.equal(await status({ method: 'POST', body, headers: forged }), 401)
  assert.equal(await status({ method: 'POST', body: 'x'.repeat(1_048_577) }), 413)
  assert.equal(await status({}), 405)
  listen.signal('SIGINT')
  const lines = linesOf(await listen.exited)
  assert.deepEqual(
    lines.map(({ signatures, event }) => [signatures.standard, signatures.service, event]),
    [
      ['missing_signature', 'missing_signature', null],
      ['invalid_signature', 'invalid_signature', null],
    ],
  )
})

test('listen refuses a delivery whose sequence number was changed', async () => {
  const company = await service.createCompany()
  let port = ''
  await using front = await startReceiver(async ({ headers, body }) => {
    const changed = /jump/.test(String(body)) ? '1000002' : /text/.test(String(body)) ? 'x' : null
    const sent = changed === null ? headers : { ...headers, 'x-service-sequence': changed }
    const init = { method: 'POST', headers: sent, body: new Uint8Array(body) }
    return { status: (await fetch(port, init)).status }
  })
  await makeWebhook(service, company, { url: front.url })
  await using listen = new AnnalsProcess(LISTEN, { ANNALS_WEBHOOK_SECRET: SECRET })
  ;[, port = ''] = await listen.printed(LISTENING, 'stderr')
  for (const [nth, action] of ['first', 'jump', 'text'].entries()) {
    await send(company.workspaceKey, action)
    await eventually(() => assert(front.requests.length > nth))
  }
  await listen.printed(/refused.*impossible number[^]*impossible number/, 'stderr')
  listen.signal('SIGINT')
  const lines = linesOf(await listen.exited)
  assert.deepEqual(
    lines.slice(0, 3).map(({ sequence, status }) => [sequence, status]),
    [
      [1, 200],
      [null, 401],
      [null, 401],
    ],
  )
})

test('listen forwards a delivery unchanged, and responds as the application does', async () => {
  const { workspaceKey, companyKey } = await service.createCompany()
  await using application = await startReceiver(({ body }) =>
    body.includes('refused') ? { status: 422 } : { status: 202 },
  )
  const args = [...LISTEN, '--forward-to', application.url]
  await using listen = new AnnalsProcess(args, environment(companyKey))
  await listen.printed(LISTENING, 'stderr')
  for (const action of ['accepted', 'refused']) {
    await send(workspaceKey, action)
    await listen.printed(new RegExp(action))
  }
  const [received] = application.requests
  assert.equal(received?.headers['x-service-sequence'], '1')
  assert.match(received?.headers['webhook-signature'] ?? '', /^v1,/)
  assert.equal(JSON.parse(String(received?.body)).action, 'accepted')
  listen.signal('SIGINT')
  const outcome = await listen.exited
  assert.deepEqual(
    linesOf(outcome).map(({ status }) => status),
    [202, 422],
  )
  // The application verifies with the secret of the session.
  assert.match(outcome.stderr, /signing secret of this session is whsec_\S+/)
})

test('listen replays the deliveries of an existing webhook that did not arrive', async () => {
  const company = await service.createCompany()
  const { workspaceKey, companyKey } = company
  let port = ''
  // Like a receiver that was away for some of the deliveries.
  await using front = await startReceiver(async ({ headers, body }) => {
    if (/missed/.test(String(body))) return { status: 503 }
    const response = await fetch(port, { method: 'POST', headers, body: new Uint8Array(body) })
    return { status: response.status }
  })
  const id = await makeWebhook(service, company, { url: front.url })
  const env = { ...environment(companyKey), ANNALS_WEBHOOK_SECRET: SECRET }
  await using listen = new AnnalsProcess([...LISTEN, '--webhook', id], env)
  ;[, port = ''] = await listen.printed(LISTENING, 'stderr')
  for (const [nth, action] of ['first', 'missed-1', 'missed-2', 'last'].entries()) {
    await send(workspaceKey, action)
    await eventually(() => assert(front.requests.length > nth))
  }
  await listen.printed(/missed-2/)
  listen.signal('SIGINT')
  const outcome = await listen.exited
  assert.equal(outcome.code, 0, outcome.stderr)
  assert.deepEqual(
    linesOf(outcome).map(({ sequence, event, isReplayed }) => [sequence, event.action, isReplayed]),
    [
      [1, 'first', false],
      [4, 'last', false],
      [2, 'missed-1', true],
      [3, 'missed-2', true],
    ],
  )
  // It is not the command's webhook.
  assert.equal((await listWebhooks(companyKey)).length, 1)
})

test('listen needs no API key for a webhook whose secret is set, and reports what is missing', async () => {
  const company = await service.createCompany()
  await using front = await startReceiver(({ headers, body }) => relay(headers, body))
  let port = ''
  const relay = async (headers: Record<string, string>, body: Buffer) => {
    if (/missed/.test(String(body))) return { status: 503 }
    const response = await fetch(port, { method: 'POST', headers, body: new Uint8Array(body) })
    return { status: response.status }
  }
  await makeWebhook(service, company, { url: front.url })
  await using listen = new AnnalsProcess(LISTEN, { ANNALS_WEBHOOK_SECRET: SECRET })
  ;[, port = ''] = await listen.printed(LISTENING, 'stderr')
  for (const [nth, action] of ['first', 'missed', 'last'].entries()) {
    await send(company.workspaceKey, action)
    await eventually(() => assert(front.requests.length > nth))
  }
  await listen.printed(/Missing deliveries: 2\. With --webhook ID, they are replayed/, 'stderr')
})

test('listen says how to allow local destinations if the service refuses them', async () => {
  await using strict = await startTestApp()
  const { companyKey } = await strict.createCompany()
  const env = { ANNALS_API_URL: strict.url, ANNALS_API_KEY: companyKey }
  const { code, stderr } = await runCommandInHost(LISTEN, env)
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^annals: The service doesn't send webhooks to .*ANNALS_WEBHOOK_DESTINATIONS=any\.\n$/,
  )
})

test('listen does not let a service elsewhere send to its own loopback address', async () => {
  const env = { ANNALS_API_URL: 'http://annals.invalid', ANNALS_API_KEY: 'annals_x' }
  const { code, stderr } = await runCommandInHost(LISTEN, env)
  assert.equal(code, 1)
  assert.match(stderr, /can't reach the loopback address.*--url/)
})

test('trigger explains why a test was not delivered, and which webhook to name', async () => {
  const company = await service.createCompany()
  await using receiver = await startReceiver({ status: 500 })
  const first = await makeWebhook(service, company, { url: receiver.url })
  const args = ['webhooks', 'trigger']
  const failed = await runCommandInHost(args, environment(company.companyKey))
  assert.equal(failed.code, 1)
  assert.match(failed.stdout, /RETRY_SCHEDULED[^]*500/)
  assert.match(failed.stderr, /^annals: The test was not delivered\. .*500.* Annals retries at /)
  const second = await makeWebhook(service, company, { url: receiver.url })
  const unnamed = await runCommandInHost(args, environment(company.companyKey))
  assert.equal(unnamed.code, 1)
  for (const id of [first, second]) assert(unnamed.stderr.includes(id), unnamed.stderr)
  receiver.respondWith({ status: 204 })
  const named = await runCommandInHost([...args, second], environment(company.companyKey))
  assert.equal(named.code, 0, named.stderr)
})
