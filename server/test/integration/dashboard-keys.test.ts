import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { documented } from '../harness/openapi/documented.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

let aheadMs = 0
const clock = () => Date.now() + aheadMs
const annals = await startTestApp({ clock })
after(() => annals[Symbol.asyncDispose]())

const DAY_MS = 86_400_000

async function createTenant(options: Parameters<typeof annals.createCompany>[0] = {}) {
  const company = await annals.createCompany(options)
  const admin = await documented(await signInAs(annals, company, 'ADMIN'))
  const workspaceId = company.workspace.id
  const create = async (body: object = {}) => {
    const given = { name: 'Till', scope: 'WORKSPACE', workspaceId, ...body }
    const response = await admin.call('POST', '/dashboard/keys', { body: given })
    assert.equal(response.status, 201, response.text)
    return response.json
  }
  return { company, admin, workspaceId, create }
}

const send = (key: string) =>
  annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })

const keyPath = ({ key }: { key: { id: string } }) => `/dashboard/keys/${key.id}`

const listKeys = async (member: Member) => (await member.call('GET', '/dashboard/keys')).json.data

const comparable = ({ status, text }: TestResponse) => [
  status,
  text.replace(/"traceId":"[^"]+"/, '"traceId":""'),
]

const statusesOf = (responses: readonly TestResponse[]) =>
  responses.map(({ status }) => status).toSorted((a, b) => a - b)

test('a new key works immediately, and only that one response contains it', async () => {
  const { company, admin, workspaceId, create } = await createTenant()
  const expiresAt = new Date(Date.now() + 60 * DAY_MS).toISOString()
  const made = await create({ expiresAt })
  assert.equal((await send(made.secret)).status, 201)
  assert(made.secret.startsWith(`${made.key.prefix}_`))
  assert.deepEqual(
    [made.key.status, made.key.workspaceId, made.key.expiresAt, made.key.lastUsedAt],
    ['ACTIVE', workspaceId, expiresAt, null],
  )
  assert.deepEqual(made.key.health, { score: 100, deductions: [] })
  const shown = await eventually(async () => {
    const [newest] = await listKeys(admin)
    assert.equal(newest.lastUsedEndpoint, 'POST /v1/events')
    return newest
  })
  assert.deepEqual([shown.id, shown.lastUsedIp], [made.key.id, '127.0.0.1'])
  const audit = await readAudit(annals, company)
  assert.deepEqual(
    audit.map(({ action }) => action),
    ['KEY_CREATED'],
  )
  assert.deepEqual(audit[0]?.resource, { type: 'key', id: made.key.id })
  const secret = made.secret.split('_')[2]
  const { text: list } = await admin.call('GET', '/dashboard/keys')
  for (const text of [list, JSON.stringify(audit)]) assert(!text.includes(secret))
})

test('a key is limited to its permissions, which the list and the audit log show', async () => {
  const { company, admin, create } = await createTenant()
  const made = await create({ permissions: ['exports', 'events:write'] })
  assert.equal((await send(made.secret)).status, 201)
  const read = await annals.call('GET', '/v1/events', { key: made.secret })
  assert.deepEqual([read.status, read.json.code], [403, 'insufficient_scope'])
  const permissions = ['events:write', 'exports']
  const [shown, ...others] = await listKeys(admin)
  const [entry] = await readAudit(annals, company)
  for (const { permissions: listed } of [made.key, shown, entry?.metadata]) {
    assert.deepEqual(listed, permissions)
  }
  assert.deepEqual(
    others.map((key: { permissions: string[] }) => key.permissions),
    [
      ['events:write', 'events:read', 'exports'],
      ['events:read', 'exports', 'webhooks', 'audit'],
    ],
  )
})

test('a company key reads all workspaces, and its health lists its problems', async () => {
  const { create } = await createTenant({ allowlist: [] })
  const made = await create({ scope: 'COMPANY', workspaceId: undefined, expiresAt: null })
  assert.equal((await annals.call('GET', '/v1/events', { key: made.secret })).status, 200)
  assert.equal(made.key.workspaceId, null)
  assert.deepEqual(made.key.health, {
    score: 75,
    deductions: [
      { points: 10, reason: 'Never expires.' },
      { points: 15, reason: 'The company has no IP allowlist.' },
    ],
  })
})

test('lists keys newest first, page by page, each once, and by workspace', async () => {
  const { company, admin, create } = await createTenant({ workspaces: ['Production', 'Staging'] })
  const made = []
  for (let count = 0; count < 4; count += 1) made.push((await create()).key.id)
  const pages: string[][] = []
  let cursor: string | null = null
  do {
    const from: string = cursor === null ? '' : `&cursor=${cursor}`
    const { json } = await admin.call('GET', `/dashboard/keys?limit=3${from}`)
    pages.push(json.data.map(({ id }: { id: string }) => id))
    cursor = json.nextCursor
  } while (cursor !== null)
  assert.deepEqual(
    pages.map((page) => page.length),
    [3, 3, 1],
  )
  assert.deepEqual(pages.flat().slice(0, 4), made.toReversed())
  assert.equal(new Set(pages.flat()).size, 7)
  const [, staging] = company.workspaces
  const { json } = await admin.call('GET', `/dashboard/keys?workspaceId=${staging?.id}`)
  assert.deepEqual(
    json.data.map(({ name }: { name: string }) => name),
    ['Staging key'],
  )
})

test('a cursor is valid only for its member and filter', async () => {
  const { company, admin, workspaceId, create } = await createTenant()
  await create()
  const { json } = await admin.call('GET', '/dashboard/keys?limit=1')
  const other = await documented(await signInAs(annals, company, 'OWNER'))
  const wrong = [
    () => other.call('GET', `/dashboard/keys?cursor=${json.nextCursor}`),
    () => admin.call('GET', `/dashboard/keys?workspaceId=${workspaceId}&cursor=${json.nextCursor}`),
    () => admin.call('GET', `/dashboard/keys?cursor=${json.nextCursor.slice(0, -2)}AA`),
    () => admin.call('GET', '/dashboard/keys?cursor=x'),
  ]
  for (const send of wrong) {
    const response = await send()
    assert.deepEqual([response.status, response.json.code], [400, 'invalid_cursor'])
  }
  for (const bad of ['limit=0', 'limit=201', 'limit=x', 'workspaceId=x', 'status=ACTIVE']) {
    assert.equal((await admin.call('GET', `/dashboard/keys?${bad}`)).status, 400, bad)
  }
})

test('the running API rejects a revoked key within two seconds', async () => {
  const { company, admin, create } = await createTenant()
  const made = await create()
  assert.equal((await send(made.secret)).status, 201)
  const revoked = await admin.call('POST', `${keyPath(made)}/revoke`, { body: {} })
  assert.deepEqual(
    [revoked.status, revoked.json.status, revoked.json.health],
    [200, 'REVOKED', null],
  )
  aheadMs += 2_000
  const { status, json } = await send(made.secret)
  assert.deepEqual([status, json.code], [401, 'invalid_api_key'])
  const again = await admin.call('POST', `${keyPath(made)}/revoke`)
  assert.equal(again.json.revokedAt, revoked.json.revokedAt)
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['KEY_CREATED', 'KEY_REVOKED'])
})

test('a rotated key works beside the new one until its grace period ends', async () => {
  const { company, admin, create } = await createTenant()
  const expiresAt = new Date(Date.now() + 10 * DAY_MS).toISOString()
  const old = await create({ expiresAt })
  const rotated = await admin.call('POST', `${keyPath(old)}/rotate`)
  assert.equal(rotated.status, 201, rotated.text)
  const { key, secret } = rotated.json
  assert.deepEqual([key.name, key.scope, key.status], ['Till', 'WORKSPACE', 'ACTIVE'])
  const lifeMs = Date.parse(key.expiresAt) - Date.parse(key.createdAt)
  assert(Math.abs(lifeMs - 10 * DAY_MS) < 60_000, 'it expires when the old one would have')
  for (const each of [old.secret, secret]) assert.equal((await send(each)).status, 201)
  const { json: status } = await annals.call('GET', '/v1/keys/status', { key: old.secret })
  const shown = (await listKeys(admin)).find(({ id }: { id: string }) => id === old.key.id)
  assert.equal(shown.status, 'ROTATING')
  const graceMs = Date.parse(shown.graceUntil) - clock()
  assert(graceMs > 0.99 * DAY_MS && graceMs <= DAY_MS)
  await eventually(async () => {
    const { json } = await annals.call('GET', '/v1/keys/status', { key: old.secret })
    assert.equal(json.status, 'ROTATING')
  })
  assert.equal(status.id, old.key.id)
  const entry = (await readAudit(annals, company)).at(-1)
  assert.equal(entry?.action, 'KEY_ROTATED')
  assert.deepEqual(
    [entry.resource.id, entry.metadata.newKeyId, entry.metadata.graceHours],
    [old.key.id, key.id, 24],
  )
  assert(!JSON.stringify(entry).includes(secret.split('_')[2]))
  await query(
    annals.database.connection,
    `update api_key set grace_until = now() where id = '${old.key.id}'`,
  )
  await eventually(async () => assert.equal((await send(old.secret)).status, 401))
  const ended = (await listKeys(admin)).find(({ id }: { id: string }) => id === old.key.id)
  assert.equal(ended.status, 'REVOKED')
})

test('a rotation without a grace period ends the old key immediately, and accepts a new expiry', async () => {
  const { admin, create } = await createTenant()
  const old = await create({ expiresAt: new Date(Date.now() + DAY_MS).toISOString() })
  const { json } = await admin.call('POST', `${keyPath(old)}/rotate`, {
    body: { graceHours: 0, expiresAt: null },
  })
  assert.equal(json.key.expiresAt, null)
  assert.equal((await send(json.secret)).status, 201)
  assert.equal((await send(old.secret)).status, 401)
})

test('an expired key can be rotated, but not a replaced or revoked one', async () => {
  const { company, admin, create } = await createTenant()
  const old = await create({ expiresAt: new Date(Date.now() + DAY_MS).toISOString() })
  await query(
    annals.database.connection,
    `update api_key set expires_at = now() - interval '1 hour', created_at = now() - interval '1 day'
      where id = '${old.key.id}'`,
  )
  const [shown] = await listKeys(admin)
  assert.deepEqual([shown.status, shown.health], ['EXPIRED', null])
  await eventually(async () => {
    const { status, json } = await send(old.secret)
    assert.deepEqual([status, json.code], [401, 'expired_api_key'])
  })
  const fresh = await admin.call('POST', `${keyPath(old)}/rotate`, { body: { graceHours: 1 } })
  assert.equal(fresh.status, 201, fresh.text)
  assert.equal((await send(fresh.json.secret)).status, 201)
  const again = await admin.call('POST', `${keyPath(old)}/rotate`)
  assert.deepEqual([again.status, again.json.code], [409, 'conflict'])
  assert.match(again.json.error, /already replaced/)
  await admin.call('POST', `${keyPath(fresh.json)}/revoke`)
  const revoked = await admin.call('POST', `${keyPath(fresh.json)}/rotate`)
  assert.match(revoked.json.error, /revoked/)
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['KEY_CREATED', 'KEY_ROTATED', 'KEY_REVOKED'])
})

test('only one of two concurrent rotations of a key succeeds', async () => {
  const { admin, create } = await createTenant()
  const old = await create()
  const responses = await Promise.all([
    admin.call('POST', `${keyPath(old)}/rotate`),
    admin.call('POST', `${keyPath(old)}/rotate`),
    admin.call('POST', `${keyPath(old)}/rotate`),
  ])
  assert.deepEqual(statusesOf(responses), [201, 409, 409])
})

test('a renamed key keeps working', async () => {
  const { company, admin, create } = await createTenant()
  const made = await create()
  const { json } = await admin.call('PATCH', keyPath(made), { body: { name: ' Till 2 ' } })
  assert.equal(json.name, 'Till 2')
  assert.equal((await send(made.secret)).status, 201)
  const entry = (await readAudit(annals, company)).at(-1)
  assert.deepEqual([entry?.action, entry?.metadata.after], ['KEY_CHANGED', { name: 'Till 2' }])
})

test('rejects invalid input with a clear message', async () => {
  const { company, admin, workspaceId, create } = await createTenant()
  const made = await create()
  const past = new Date(Date.now() - 1_000).toISOString()
  const good = { name: 'Till', scope: 'WORKSPACE', workspaceId }
  const creations = [
    [{ ...good, name: ' ' }, '/name'],
    [{ ...good, name: 'x'.repeat(201) }, '/name'],
    [{ ...good, scope: 'ALL' }, '/scope'],
    [{ ...good, scope: 'COMPANY' }, '/workspaceId'],
    [{ name: 'Till', scope: 'WORKSPACE' }, '/workspaceId'],
    [{ ...good, workspaceId: 'x' }, '/workspaceId'],
    [{ ...good, expiresAt: past }, '/expiresAt'],
    [{ ...good, expiresAt: '2027-01-01' }, '/expiresAt'],
    [{ ...good, expiresAt: 1_900_000_000 }, '/expiresAt'],
    [{ ...good, permissions: [] }, '/permissions'],
    [{ ...good, permissions: 'events:write' }, '/permissions'],
    [{ ...good, permissions: null }, '/permissions'],
    [{ ...good, permissions: ['events:write', 'events:write'] }, '/permissions'],
    [{ ...good, permissions: ['events:write', 'events:delete'] }, '/permissions/1'],
    [{ ...good, permissions: ['EVENTS:WRITE'] }, '/permissions/0'],
    [{ ...good, permissions: ['webhooks', 'audit'] }, '/permissions'],
    [{ name: 'Till', scope: 'COMPANY', permissions: ['events:write'] }, '/permissions'],
    [{ ...good, secret: 'mine' }, '/secret'],
  ] as const
  for (const [body, path] of creations) {
    const { status, json } = await admin.call('POST', '/dashboard/keys', { body })
    assert.equal(status, 400, JSON.stringify(body).slice(0, 90))
    assert(json.details.some((detail: { path: string }) => detail.path === path))
  }
  for (const body of [
    { graceHours: 25 },
    { graceHours: -1 },
    { graceHours: 0.5 },
    { graceHours: '1' },
    { expiresAt: past },
    { name: 'x' },
    { permissions: ['events:read'] },
    [],
  ]) {
    const { status } = await admin.call('POST', `${keyPath(made)}/rotate`, { body })
    assert.equal(status, 400, JSON.stringify(body))
  }
  const revoke = await admin.call('POST', `${keyPath(made)}/revoke`, { body: { now: true } })
  assert.equal(revoke.status, 400)
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['KEY_CREATED'])
})

test('only owners and admins can see and manage keys', async () => {
  const { company, create } = await createTenant()
  const made = await create()
  for (const role of ['ANALYST', 'VIEWER'] as const) {
    const member = await documented(await signInAs(annals, company, role, [company.workspace.id]))
    const responses = [
      await member.call('GET', '/dashboard/keys'),
      await member.call('POST', '/dashboard/keys', { body: { name: 'x', scope: 'COMPANY' } }),
      await member.call('PATCH', keyPath(made), { body: { name: 'x' } }),
      await member.call('POST', `${keyPath(made)}/rotate`),
      await member.call('POST', `${keyPath(made)}/revoke`),
      await member.call('POST', '/dashboard/keys/preflight', {
        body: { keyId: made.key.id, operation: 'listEvents' },
      }),
    ]
    for (const { status, json } of responses) {
      assert.deepEqual([status, json.code], [403, 'insufficient_role'])
    }
  }
  assert.equal((await send(made.secret)).status, 201)
})

test('keys and workspaces of another company get the same response as unknown ones', async () => {
  const { admin } = await createTenant()
  const other = await createTenant()
  const made = await other.create()
  const requests: ((id: string) => Promise<TestResponse>)[] = [
    (id) => admin.call('PATCH', `/dashboard/keys/${id}`, { body: { name: 'x' } }),
    (id) => admin.call('POST', `/dashboard/keys/${id}/rotate`),
    (id) => admin.call('POST', `/dashboard/keys/${id}/revoke`),
  ]
  for (const send of requests) {
    const foreign = comparable(await send(made.key.id))
    assert.equal(foreign[0], 404)
    for (const id of [newId(), 'no-id']) assert.deepEqual(comparable(await send(id)), foreign)
  }
  const inBody: ((id: string, workspaceId: string) => Promise<TestResponse>)[] = [
    (keyId) =>
      admin.call('POST', '/dashboard/keys/preflight', { body: { keyId, operation: 'listEvents' } }),
    (_id, workspaceId) =>
      admin.call('POST', '/dashboard/keys', {
        body: { name: 'x', scope: 'WORKSPACE', workspaceId },
      }),
    (_id, workspaceId) => admin.call('GET', `/dashboard/keys?workspaceId=${workspaceId}`),
  ]
  for (const send of inBody) {
    const foreign = comparable(await send(made.key.id, other.workspaceId))
    assert.equal(foreign[0], 404)
    assert.deepEqual(comparable(await send(newId(), newId())), foreign)
  }
  assert.equal((await send(made.secret)).status, 201)
})

test('rejects the 101st key, even with concurrent requests, but not a rotation', async () => {
  const { company, admin, workspaceId, create } = await createTenant()
  const made = await create()
  await query(
    annals.database.connection,
    `insert into api_key (id, company_id, workspace_id, kid, secret_hash, scope, name, expires_at, grace_until, revoked_at)
     select gen_random_uuid(), '${company.company.id}', '${workspaceId}', gen_random_uuid()::text, sha256(n::text::bytea),
            'WORKSPACE', 'K' || n,
            case when n % 4 = 1 then now() - interval '1 hour' end,
            case when n % 4 = 2 then now() + interval '1 hour' end,
            case when n % 4 = 3 then now() end
       from generate_series(1, 388) n`,
  )
  // 97 of these are active and not being replaced. With the workspace's first key and ours, there
  // are 99.
  const body = { name: 'Last', scope: 'WORKSPACE', workspaceId }
  const responses = await Promise.all(
    [1, 2, 3].map(() => admin.call('POST', '/dashboard/keys', { body })),
  )
  assert.deepEqual(statusesOf(responses), [201, 409, 409])
  assert.match(responses.find(({ status }) => status === 409)?.json.error, /100 keys/)
  assert.equal((await admin.call('POST', `${keyPath(made)}/rotate`)).status, 201)
  const company201 = await admin.call('POST', '/dashboard/keys', {
    body: { name: 'Company', scope: 'COMPANY' },
  })
  assert.equal(company201.status, 201, 'company keys are counted separately')
})

test('rejects the 1,001st new key within a day, however many are revoked', async () => {
  const { company, admin, workspaceId } = await createTenant()
  await query(
    annals.database.connection,
    `insert into api_key (id, company_id, workspace_id, kid, secret_hash, scope, name, revoked_at)
     select gen_random_uuid(), company_id, workspace_id, gen_random_uuid()::text, secret_hash, scope, name, now()
       from (select * from api_key where workspace_id = '${workspaceId}' limit 1) as one, generate_series(1, 1000)`,
  )
  const create = () => {
    const body = { name: 'One more', scope: 'WORKSPACE', workspaceId }
    return admin.call('POST', '/dashboard/keys', { body })
  }
  const { status, json, headers } = await create()
  assert.deepEqual([status, json.code], [429, 'rate_limited'])
  assert.match(json.error, /1,?000 keys in 24 hours/)
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  const yesterday = `now() - interval '25 hours'`
  await query(
    annals.database.connection,
    `update api_key set created_at = ${yesterday} where company_id = '${company.company.id}'`,
  )
  assert.equal((await create()).status, 201)
})

test('also limits keys in their grace period', async () => {
  const { company, admin, workspaceId, create } = await createTenant()
  const made = await create()
  await query(
    annals.database.connection,
    `insert into api_key (id, company_id, workspace_id, kid, secret_hash, scope, name, grace_until)
     select gen_random_uuid(), '${company.company.id}', '${workspaceId}', gen_random_uuid()::text, sha256(n::text::bytea),
            'WORKSPACE', 'K' || n, now() + interval '1 hour' from generate_series(1, 100) n`,
  )
  const { status, json } = await admin.call('POST', `${keyPath(made)}/rotate`)
  assert.deepEqual([status, json.code], [409, 'conflict'])
  assert.match(json.error, /grace period/)
  const atOnce = await admin.call('POST', `${keyPath(made)}/rotate`, { body: { graceHours: 0 } })
  assert.equal(atOnce.status, 201)
})
