import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { crc32 } from 'node:zlib'
import { createKeyText, parseKeyText } from '../../src/tenancy/key/key-text.ts'
import { assertErrorShape } from '../harness/http/error-shape.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { RawConnection, sendRaw } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const logLines: string[] = []
const logger = pino({ level: 'trace' }, { write: (line) => void logLines.push(line) })
let aheadMs = 0
const clock = () => Date.now() + aheadMs
const annals = await startTestApp({ clock, logger, env: { ANNALS_RATE_LIMITS: 'off' } })
const second = await startTestApp({ clock, databaseUrl: annals.database.url, logger })
after(async () => {
  await second[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})
const { db } = annals.app.database

const status = (key?: string) =>
  annals.call('GET', '/v1/keys/status', key === undefined ? {} : { key })

const kidOf = (key: string) => parseKeyText(key)?.kid ?? ''

/** Changes the database directly, as another node would. */
async function changeKey(
  key: string,
  change: Partial<Record<'expires_at' | 'revoked_at' | 'grace_until', Date>>,
) {
  await db.updateTable('api_key').set(change).where('kid', '=', kidOf(key)).execute()
}

const inMs = (ms: number) => new Date(Date.now() + ms)

test('workspace keys and company keys can read their own status', async () => {
  const { company, workspace, workspaceKey, companyKey } = await annals.createCompany()
  for (const [key, scope, workspaceId, permissions] of [
    [workspaceKey, 'WORKSPACE', workspace.id, ['events:write', 'events:read', 'exports']],
    [companyKey, 'COMPANY', null, ['events:read', 'exports', 'webhooks', 'audit']],
  ] as const) {
    const { status: code, json } = await status(key)
    assert.equal(code, 200)
    const { id, ...rest } = json
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.deepEqual(rest, {
      prefix: `annals_${kidOf(key)}`,
      scope,
      status: 'ACTIVE',
      expiresAt: null,
      lastUsedAt: null,
      lastUsedIp: null,
      lastUsedEndpoint: null,
      healthScore: 90,
      companyId: company.id,
      workspaceId,
      plan: 'ENTERPRISE',
      permissions,
    })
  }
})

test('a call without a key gets instructions to send one', async () => {
  const { status: code, json, headers } = await status()
  assert.deepEqual([code, json.code], [401, 'missing_api_key'])
  assert.equal(headers.get('www-authenticate'), 'Bearer')
})

test('an unknown, revoked or replaced key is invalid, and one past its end is expired', async () => {
  const hourAgo = inMs(-3_600_000)
  const cases = [
    [{ revoked_at: hourAgo }, 'invalid_api_key'],
    [{ grace_until: hourAgo }, 'invalid_api_key'],
    [{ expires_at: hourAgo }, 'expired_api_key'],
    [{ expires_at: hourAgo, revoked_at: hourAgo }, 'invalid_api_key'],
    [{ expires_at: hourAgo, grace_until: inMs(60_000) }, 'expired_api_key'],
  ] as const
  for (const [change, code] of cases) {
    const { workspaceKey } = await annals.createCompany()
    await changeKey(workspaceKey, change)
    const response = await status(workspaceKey)
    assert.deepEqual([response.status, response.json.code], [401, code], JSON.stringify(change))
  }
  const unknown = await status(createKeyText().text)
  assert.deepEqual([unknown.status, unknown.json.code], [401, 'invalid_api_key'])
})

test('a rotated key works during its grace period and reports that it is rotating', async () => {
  const { workspaceKey } = await annals.createCompany()
  await changeKey(workspaceKey, { grace_until: inMs(60_000), expires_at: inMs(86_400_000) })
  const { json } = await status(workspaceKey)
  assert.equal(json.status, 'ROTATING')
  assert.match(json.expiresAt, /^\d{4}-\d\d-\d\dT.*Z$/)
})

test('a revocation takes effect on every node within two seconds, permanently', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const nodes = [annals, second]
  for (const node of nodes)
    assert.equal((await node.call('GET', '/v1/keys/status', { key })).status, 200)
  await changeKey(key, { revoked_at: new Date() })
  aheadMs += 2_000
  for (const node of nodes) {
    for (let times = 0; times < 5; times++) {
      assert.equal((await node.call('GET', '/v1/keys/status', { key })).status, 401)
    }
  }
})

test('a recently verified key does not authenticate another secret with its name', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const forged = [
    withChecksum(`annals_${kidOf(key)}_${createKeyText().secret}`),
    key.replace(/_[^_]{6}$/, '_AAAAAA'),
    key.slice(0, -1),
    key.slice(0, -1) + String.fromCharCode(key.charCodeAt(key.length - 1) ^ 1),
  ]
  assert(parseKeyText(forged[0] ?? ''), 'the first is well-formed')
  for (const text of [...forged, ...forged]) {
    assert.equal((await status(key)).status, 200)
    assert.equal((await status(text)).status, 401, text)
  }
})

test('every malformed Authorization header gets a 401 in the error format', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const { kid, secret } = parseKeyText(key) ?? { kid: '', secret: '' }
  const otherSecret = createKeyText().secret
  const missing = [
    '',
    ' ',
    'Bearer',
    'Bearer ',
    'Basic',
    `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
    `Token ${key}`,
    key,
    `Bearer${key}`,
    `Bearer\t${key}`,
    `Bearer ${key} ${key}`,
    `Bearer ${key},Bearer ${key}`.replace(',', ' , '),
    `Bearer, ${key}`,
    `Digest username="${key}"`,
    `"Bearer ${key}"`,
  ]
  const invalid = [
    'Bearer x',
    'Bearer null',
    `Bearer ${key},${key}`,
    `Bearer <${key}>`,
    `Bearer "${key}"`,
    `Bearer ${key}.`,
    `Bearer ${key.slice(0, -1)}`,
    `Bearer ${key}0`,
    `Bearer ${key.toLowerCase()}`,
    `Bearer ${key.slice(0, 30)}${key[30] === 'a' ? 'b' : 'a'}${key.slice(31)}`,
    `Bearer ${withChecksum(`annals_${kid}_${otherSecret}`)}`,
    `Bearer ${withChecksum(`annals_${kid.toLowerCase()}0_${secret}`)}`,
    `Bearer ${createKeyText().text}`,
    `Bearer annals_${kid}`,
    `Bearer annals_${kid}_${secret}`,
    'Bearer annals___',
    `Bearer ${'A'.repeat(10_000)}`,
    `Bearer ${'annals_'.repeat(1_000)}`,
    `Bearer ключ`,
    `Bearer \xff\xfe\xfd`,
    `Bearer ${encodeURIComponent(`${key}\u0000`)}`,
    `Bearer '; drop table api_key; --`.replaceAll(' ', '+').replace('Bearer+', 'Bearer '),
    `Bearer ${'$'.repeat(100)}`,
  ]
  for (const [headers, code] of [
    [missing, 'missing_api_key'],
    [invalid, 'invalid_api_key'],
  ] as const) {
    for (const authorization of headers) {
      const response = await sendRaw(
        annals.url,
        `GET /v1/keys/status HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`,
      )
      assertErrorShape(response, { status: 401, code }, authorization)
    }
  }
  assert.equal((await status(key)).status, 200, 'the right key still works')
})

test('accepts the scheme in any case, with any number of spaces', async () => {
  const { workspaceKey } = await annals.createCompany()
  for (const prefix of ['bearer ', 'BEARER ', 'Bearer   ']) {
    const headers = { authorization: `${prefix}${workspaceKey}` }
    assert.equal((await annals.call('GET', '/v1/keys/status', { headers })).status, 200, prefix)
  }
})

test('rejects two Authorization headers, whichever of them is valid', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (const [first, last] of [
    [key, 'x'],
    ['x', key],
    [key, key],
  ]) {
    const response = await sendRaw(
      annals.url,
      `GET /v1/keys/status HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${first}\r\nauthorization: Bearer ${last}\r\n\r\n`,
    )
    assertErrorShape(response, { status: 401, code: 'invalid_api_key' })
  }
})

test('last use is the call before this one, and is written in batches', async () => {
  const { companyKey } = await annals.createCompany()
  await annals.call('POST', '/v1/keys/any/rotate', { key: companyKey })
  const { json } = await status(companyKey)
  assert.equal(json.lastUsedEndpoint, 'POST /v1/keys/{keyId}/rotate')
  assert.equal(json.lastUsedIp, '127.0.0.1')
  assert(Date.now() - Date.parse(json.lastUsedAt) < 60_000)
  const { json: next } = await status(companyKey)
  assert.equal(next.lastUsedEndpoint, 'GET /v1/keys/status')
  const row = await eventually(() => writtenUse(companyKey))
  assert.equal(row.used_ip, '127.0.0.1')
  assert(row.calls >= 1 && row.failures <= 1)
})

test('a use on one node is visible on another once it is written', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await annals.call('POST', '/v1/keys/any/rotate', { key })
  await eventually(() => writtenUse(key))
  const { json } = await second.call('GET', '/v1/keys/status', { key })
  assert.equal(json.lastUsedEndpoint, 'POST /v1/keys/{keyId}/rotate')
})

test('creating and rotating keys gets a 403 for any id and any body', async () => {
  const { workspaceKey, companyKey, workspace } = await annals.createCompany()
  const ids = [workspace.id, 'x', '%20', '..%2f..', '%F0%9F%94%91', 'a'.repeat(2_000), '%00']
  const bodies = ['', '{}', '{"name":', '[]', 'x'.repeat(300_000)]
  for (const key of [workspaceKey, companyKey]) {
    for (const id of ids) {
      for (const path of [`/v1/workspaces/${id}/keys`, `/v1/keys/${id}/rotate`]) {
        const { status: code, json } = await annals.call('POST', path, { key })
        assert.deepEqual([code, json.code], [403, 'dashboard_only'], path)
      }
    }
  }
  for (const text of bodies) {
    const options = { key: companyKey, text, headers: { 'content-type': 'text/plain' } }
    for (const path of ['/v1/workspaces/any/keys', '/v1/keys/any/rotate']) {
      const { status: code } = await annals.call('POST', path, options)
      assert.equal(code, 403, `${path} with a body of ${text.length} bytes`)
    }
  }
  const anonymous = await annals.call('POST', '/v1/keys/any/rotate')
  assert.equal(anonymous.status, 401, 'authentication comes first')
})

test('rejects an anonymous caller before reading its body', async () => {
  const head = 'POST /v1/keys/any/rotate HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n'
  const response = await sendRaw(annals.url, `${head}\r\n`)
  assertErrorShape(response, { status: 401, code: 'missing_api_key' })
  await using connection = new RawConnection(annals.url)
  connection.send(`${head}content-type: application/json\r\nauthorization: Bearer x\r\n\r\n{"a":`)
  assertErrorShape(await connection.response(), { status: 401, code: 'invalid_api_key' })
})

test('the secret of a key appears nowhere in the database or the log', async () => {
  const { workspaceKey, companyKey, user } = await annals.createCompany({
    password: 'hunter2-hunter2',
  })
  for (const key of [workspaceKey, companyKey]) await status(key)
  await annals.call('GET', `/v1/keys/status?key=${workspaceKey}`, { key: workspaceKey })
  await annals.call('GET', '/v1/keys/status', { key: `${workspaceKey}0` })
  await eventually(() => writtenUse(workspaceKey))
  const { rows: tables } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = 'public'`.execute(
    db,
  )
  assert(tables.length >= 8)
  const secrets = [workspaceKey, companyKey].map((key) => parseKeyText(key)?.secret ?? '')
  for (const text of [...secrets, user.password].flatMap(spellings)) {
    for (const { name } of tables) {
      const { rows } = await sql`
        select 1 from ${sql.table(name)} as r where strpos(r::text, ${text}) > 0`.execute(db)
      assert.equal(rows.length, 0, `${name} contains it`)
    }
    assert(!logLines.some((line) => line.includes(text)), 'the log contains it')
  }
  assert(logLines.length > 100, 'the log was captured')
})

/** The row of the key's last use. Fails while there is none. */
async function writtenUse(key: string) {
  return await db
    .selectFrom('api_key_use')
    .innerJoin('api_key', 'api_key.id', 'api_key_use.key_id')
    .select(['used_ip', 'used_endpoint', 'calls', 'failures'])
    .where('kid', '=', kidOf(key))
    .executeTakeFirstOrThrow()
}

function spellings(text: string): string[] {
  const bytes = Buffer.from(text)
  return [text, bytes.toString('hex'), bytes.toString('base64').replace(/=+$/, '')]
}

function withChecksum(body: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let rest = crc32(body)
  let checksum = ''
  while (checksum.length < 6) {
    checksum = digits.charAt(rest % 62) + checksum
    rest = Math.floor(rest / 62)
  }
  return `${body}_${checksum}`
}
