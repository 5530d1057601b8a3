import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type ReceivedRequest, startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const logLines: string[] = []
const logger = pino({ level: 'trace' }, { write: (line) => void logLines.push(line) })
const { clock, advance } = manualClock()
const env = { ANNALS_WEBHOOK_DESTINATIONS: 'any', ANNALS_RATE_LIMITS: 'off' }
const annals = await startTestApp({ logger, clock, env })
after(() => annals[Symbol.asyncDispose]())
const receiver = await startReceiver()
after(() => receiver[Symbol.asyncDispose]())
const { db } = annals.app.database

const HOUR_MS = 3_600_000

async function made(company: CreatedCompany, fields: object = {}) {
  const path = `/v1/workspaces/${company.workspace.id}/webhooks`
  const body = { url: receiver.url, ...fields }
  const { json } = await annals.call('POST', path, { key: company.companyKey, body })
  const post = (suffix: string, options?: unknown) =>
    annals.call('POST', `/v1/webhooks/${json.id}/${suffix}`, {
      key: company.companyKey,
      body: options,
    })
  const nextSecretAt = async () => {
    const list = await annals.call('GET', path, { key: company.companyKey })
    return list.json.webhooks[0].nextSecretAt
  }
  return { id: String(json.id), secret: String(json.secret), post, nextSecretAt }
}

type Made = Awaited<ReturnType<typeof made>>

/** Sends a test, and returns which secrets signed it: by the contract, and by Standard Webhooks. */
async function signersOf({ post }: Made, secrets: readonly string[]) {
  const { json } = await post('test')
  const request = await received(json.deliveryId)
  return {
    contract: secrets.filter((secret) => isSigned(request, secret)),
    standard: secrets.filter((secret) => isStandardSigned(request, secret)),
  }
}

async function received(deliveryId: string): Promise<ReceivedRequest> {
  for (let count = 1; ; count += 1) {
    const requests = await receiver.waitFor(count)
    const request = requests.find(({ headers }) => headers['webhook-id'] === deliveryId)
    if (request) return request
  }
}

function isSigned({ body, headers }: ReceivedRequest, secret: string): boolean {
  const hmac = createHmac('sha256', secret).update(body).digest('hex')
  return headers['x-service-signature'] === `v1=${hmac}`
}

/** By hand, because the library uses the machine's clock. */
function isStandardSigned({ body, headers }: ReceivedRequest, secret: string): boolean {
  const at = new Date(Number(headers['webhook-timestamp']) * 1_000)
  const key = secret.startsWith('whsec_') ? secret : Buffer.from(secret).toString('base64')
  const signature = new Webhook(key).sign(headers['webhook-id'] ?? '', at, body.toString())
  return (headers['webhook-signature'] ?? '').split(' ').includes(signature)
}

test('both secrets sign during a rotation, then only the new one', async () => {
  const webhook = await made(await annals.createCompany())
  const { status, json } = await webhook.post('rotate-secret')
  const secrets = [webhook.secret, json.secret]
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(json), ['id', 'secret', 'secretLabel', 'nextSecretAt'])
  assert.match(json.secret, /^whsec_/)
  assert.notEqual(json.secret, webhook.secret)
  assert.equal(Date.parse(json.nextSecretAt), clock() + 24 * HOUR_MS)
  assert.equal(await webhook.nextSecretAt(), json.nextSecretAt)
  const during = { contract: [webhook.secret], standard: secrets }
  assert.deepEqual(await signersOf(webhook, secrets), during)
  advance(24 * HOUR_MS)
  const afterwards = { contract: [json.secret], standard: [json.secret] }
  assert.deepEqual(await signersOf(webhook, secrets), afterwards)
  assert.equal(await webhook.nextSecretAt(), null)
  const next = await webhook.post('rotate-secret', { customSecret: 'a custom one' })
  assert.deepEqual([next.status, next.json.secret], [200, 'a custom one'])
  assert.deepEqual(await signersOf(webhook, [...secrets, 'a custom one']), {
    contract: [json.secret],
    standard: [json.secret, 'a custom one'],
  })
})

test('a second rotation is rejected with the end of the first and how to finish it', async () => {
  const webhook = await made(await annals.createCompany())
  const requests = Array.from({ length: 4 }, () =>
    webhook.post('rotate-secret', { overlapSeconds: 604_800 }),
  )
  const responses = await Promise.all(requests)
  const [winner, ...others] = responses.filter(({ status }) => status === 200)
  assert(winner && others.length === 0, 'one of four concurrent requests')
  for (const { status, json } of responses.filter((response) => response !== winner)) {
    assert.deepEqual([status, json.code], [409, 'conflict'])
    assert(json.error.includes(winner.json.nextSecretAt), json.error)
    assert.match(json.error, /finish-rotation/)
  }
  const secrets = [webhook.secret, winner.json.secret]
  const { status, json } = await webhook.post('finish-rotation')
  assert.deepEqual([status, json], [200, { id: webhook.id, nextSecretAt: null }])
  const alone = { contract: [winner.json.secret], standard: [winner.json.secret] }
  assert.deepEqual(await signersOf(webhook, secrets), alone)
  assert.equal((await webhook.post('finish-rotation')).status, 200, 'nothing is left to finish')
  assert.deepEqual(await signersOf(webhook, secrets), alone)
})

test('without an overlap, the new secret replaces all others immediately', async () => {
  const webhook = await made(await annals.createCompany(), { customSecret: 'the first secret' })
  const { json: second } = await webhook.post('rotate-secret')
  const { status, json: third } = await webhook.post('rotate-secret', { overlapSeconds: 0 })
  assert.deepEqual([status, third.nextSecretAt], [200, null])
  const secrets = [webhook.secret, second.secret, third.secret]
  const alone = { contract: [third.secret], standard: [third.secret] }
  assert.deepEqual(await signersOf(webhook, secrets), alone)
})

test('rejects an overlap outside its limits, or a secret of the wrong length', async () => {
  const webhook = await made(await annals.createCompany())
  for (const options of [
    { overlapSeconds: -1 },
    { overlapSeconds: 604_801 },
    { overlapSeconds: 1.5 },
    { overlapSeconds: '60' },
    { customSecret: 'short' },
    { customSecret: null },
    { secretLabel: 'x'.repeat(65) },
    { secretLabel: null },
  ]) {
    const { status, json } = await webhook.post('rotate-secret', options)
    assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(options))
  }
  assert.equal(await webhook.nextSecretAt(), null)
})

test('a rotation gives the new secret its own label, or none', async () => {
  const company = await annals.createCompany()
  const webhook = await made(company, { secretLabel: 'first' })
  const listed = async () => {
    const path = `/v1/workspaces/${company.workspace.id}/webhooks`
    const { json } = await annals.call('GET', path, { key: company.companyKey })
    return json.webhooks[0].secretLabel
  }
  const rotate = async (body: object) =>
    (await webhook.post('rotate-secret', body)).json.secretLabel
  assert.equal(await rotate({ secretLabel: 'second' }), 'second')
  assert.equal(await listed(), 'second')
  assert.equal((await webhook.post('finish-rotation')).status, 200)
  assert.equal(await listed(), 'second')
  assert.equal(await rotate({ overlapSeconds: 0 }), null)
  assert.equal(await listed(), null)
})

test('a secret is shown once, and appears nowhere in the database or the log', async () => {
  const company = await annals.createCompany()
  const webhook = await made(company, { customSecret: 'hunter2-hunter2-ключ' })
  const generated = await made(company)
  const { json: rotated } = await webhook.post('rotate-secret')
  const { json: custom } = await generated.post('rotate-secret', { customSecret: 'correct horse' })
  const secrets = [webhook.secret, generated.secret, rotated.secret, custom.secret]
  await signersOf(webhook, secrets)
  await webhook.post('rotate-secret', { customSecret: `${webhook.secret}\0` })
  await webhook.post('rotate-secret', { customSecret: webhook.secret, overlapSeconds: 60 })
  const key = company.companyKey
  const shown = await Promise.all([
    annals.call('GET', `/v1/workspaces/${company.workspace.id}/webhooks`, { key }),
    annals.call('GET', `/v1/webhooks/${webhook.id}/deliveries`, { key }),
    annals.call('PATCH', `/v1/webhooks/${webhook.id}`, { key, body: { url: receiver.url } }),
    webhook.post('disable'),
    webhook.post('enable'),
    webhook.post('finish-rotation'),
  ])
  const { rows: tables } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = 'public'`.execute(
    db,
  )
  assert(tables.some(({ name }) => name === 'webhook'))
  for (const text of secrets.flatMap(spellings)) {
    for (const { name } of tables) {
      const { rows } = await sql`
        select 1 from ${sql.table(name)} as r where strpos(r::text, ${text}) > 0`.execute(db)
      assert.equal(rows.length, 0, `${name} contains it`)
    }
    assert(!logLines.some((line) => line.includes(text)), 'the log contains it')
    assert(!shown.some((response) => response.text.includes(text)), 'a response contains it')
  }
  assert(logLines.length > 20, 'the log was captured')
})

function spellings(text: string): string[] {
  const bytes = Buffer.from(text)
  return [text, bytes.toString('hex'), bytes.toString('base64'), text.replace('whsec_', '')]
}

test('a secret copied to another webhook cannot be decrypted', async () => {
  const company = await annals.createCompany()
  const [one, other] = [await made(company), await made(company)]
  const { secret } = await db
    .selectFrom('webhook')
    .select('secret')
    .where('id', '=', one.id)
    .executeTakeFirstOrThrow()
  await db.updateTable('webhook').set({ secret }).where('id', '=', other.id).execute()
  const { json } = await other.post('test')
  const path = `/v1/webhooks/${other.id}/deliveries/${json.deliveryId}`
  const delivery = await eventually(async () => {
    const response = await annals.call('GET', path, { key: company.companyKey })
    assert.equal(response.json.status, 'RETRY_SCHEDULED')
    return response.json
  })
  assert.match(delivery.attempts[0].message, /^The webhook's secret can't be decrypted/)
})
