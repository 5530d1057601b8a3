import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { assertChainsHold, countStored, idsOf, walkEvents } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const { clock } = manualClock(Date.parse('2026-03-01T12:00:00.000Z'))
const annals = await startTestApp({ clock })
after(() => annals[Symbol.asyncDispose]())
const { workspaceKey: key, project } = await annals.createCompany()
const stranger = await annals.createCompany({ workspaces: ['One', 'Two'] })

const pathOf = ({ path }: { path: string }) => path
const GOOD = { category: 'c', action: 'a' }

/** A body, and the path and code of its error. */
type Refusal = [body: unknown, path: string, code?: string]

const FIELDS: readonly Refusal[] = [
  [{ category: 'c' }, '/action'],
  [{ action: 'a' }, '/category'],
  [{ ...GOOD, category: '' }, '/category'],
  [{ ...GOOD, action: '' }, '/action'],
  [{ ...GOOD, category: 'x'.repeat(257) }, '/category'],
  [{ ...GOOD, action: '🎈'.repeat(257) }, '/action'],
  ...[1, true, null, [], {}].flatMap((value): Refusal[] => [
    [{ ...GOOD, category: value }, '/category'],
    [{ ...GOOD, action: value }, '/action'],
    [{ ...GOOD, timestamp: value }, '/timestamp'],
    [{ ...GOOD, projectId: value }, '/projectId'],
    [{ ...GOOD, idempotencyKey: value }, '/idempotencyKey'],
    [{ ...GOOD, actor: { id: value } }, '/actor/id'],
    [{ ...GOOD, actor: { email: value } }, '/actor/email'],
    [{ ...GOOD, actor: { role: value } }, '/actor/role'],
    [{ ...GOOD, resource: { type: value } }, '/resource/type'],
    [{ ...GOOD, resource: { id: value } }, '/resource/id'],
  ]),
  ...[1, 'text', false, null, []].flatMap((value): Refusal[] => [
    [{ ...GOOD, actor: value }, '/actor'],
    [{ ...GOOD, resource: value }, '/resource'],
    [{ ...GOOD, metadata: value }, '/metadata'],
  ]),
  [{ ...GOOD, unknown: 1 }, '/unknown'],
  [{ ...GOOD, id: newId() }, '/id'],
  [{ ...GOOD, workspaceId: newId() }, '/workspaceId'],
  [{ ...GOOD, Category: 'c' }, '/Category'],
  [{ ...GOOD, actor: { name: 'Ada' } }, '/actor/name'],
  [{ ...GOOD, actor: { 'a/b~c': 1 } }, '/actor/a~1b~0c'],
  [{ ...GOOD, resource: { name: 'x' } }, '/resource/name'],
  [{ ...GOOD, idempotencyKey: '' }, '/idempotencyKey'],
  [{ ...GOOD, idempotencyKey: 'x'.repeat(256) }, '/idempotencyKey'],
  [{ ...GOOD, actor: { id: 'x'.repeat(513) } }, '/actor/id'],
  [{ ...GOOD, actor: { role: 'x'.repeat(513) } }, '/actor/role'],
  [{ ...GOOD, resource: { type: 'x'.repeat(513) } }, '/resource/type'],
  [{ ...GOOD, resource: { id: 'x'.repeat(513) } }, '/resource/id'],
  ...['', 'ada', '@example.com', 'ada@', 'a@b@c', 'a b@example.com', 'ada@exam ple.com'].map(
    (email): Refusal => [{ ...GOOD, actor: { email } }, '/actor/email'],
  ),
  ...['', 'x', `urn:uuid:${project.id}`, `{${project.id}}`, `${project.id} `].map(
    (projectId): Refusal => [{ ...GOOD, projectId }, '/projectId'],
  ),
  ...[newId(), stranger.project.id].map((projectId): Refusal => [
    { ...GOOD, projectId },
    '/projectId',
    'unknown_project',
  ]),
]

const TIMESTAMPS = [
  '',
  'now',
  '1772366400000',
  '2026-03-01',
  '2026-03-01T12:00:00',
  '2026-03-01 12:00:00Z',
  '2026-03-01T12:00Z',
  '2026-03-01T12:00:60Z',
  '2026-03-01T12:60:00Z',
  '2026-03-01T24:00:00Z',
  '2026-02-29T12:00:00Z',
  '2026-13-01T12:00:00Z',
  '2026-00-01T12:00:00Z',
  '2026-03-00T12:00:00Z',
  '2026-04-31T12:00:00Z',
  '2026-03-01T12:00:00.Z',
  '2026-03-01T12:00:00.1234567890Z',
  '2026-03-01T12:00:00,5Z',
  '2026-03-01T12:00:00+24:00',
  '2026-03-01T12:00:00+01:60',
  '2026-03-01T12:00:00+0100',
  '+002026-03-01T12:00:00Z',
  '0000-01-01T00:00:00+00:01',
  ' 2026-03-01T12:00:00Z',
  '2026-03-01T12:00:00Z\n',
  // A millisecond more than a day ahead, in two spellings, and years ahead.
  '2026-03-02T12:00:00.001Z',
  '2026-03-02T13:00:00.001+01:00',
  '9999-12-31T23:59:59Z',
]

/** Texts that only a strict parser rejects, or that are not JSON at all. */
type TextRefusal = [text: string | Buffer, path: string | null, code?: string]

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const withMetadata = (json: string) => `{"category":"c","action":"a","metadata":${json}}`
const utf8 = Buffer.from(withMetadata('{"k":"?"}'))
const brokenUtf8 = Buffer.from(utf8.map((byte) => (byte === 0x3f ? 0xff : byte)))

const TEXTS: readonly TextRefusal[] = [
  ['', ''],
  ['null', ''],
  ['[]', ''],
  ['"text"', ''],
  ['5', ''],
  [`[${JSON.stringify(GOOD)}]`, ''],
  // The body is the first level and metadata the second.
  [withMetadata(`{"k":${nested(31)}}`), `/metadata/k${'/0'.repeat(30)}`],
  [withMetadata('{"k":1e400}'), '/metadata/k'],
  [withMetadata('{"k":-1e400}'), '/metadata/k'],
  [withMetadata('{"k":1e-400}'), '/metadata/k'],
  [withMetadata('{"k":12345678901234567890}'), '/metadata/k'],
  [withMetadata('{"k":[0,9007199254740993]}'), '/metadata/k/1'],
  [withMetadata('{"k":0.1000000000000000055}'), '/metadata/k'],
  [withMetadata('{"k":"a\\u0000b"}'), '/metadata/k'],
  [withMetadata('{"a\\u0000b":1}'), '/metadata'],
  [withMetadata('{"k":"\\ud800"}'), '/metadata/k'],
  [withMetadata('{"k":"\\udc00\\ud800"}'), '/metadata/k'],
  ['{"category":"\\u0000","action":"a"}', '/category'],
  ['{"category":"c","action":"\\udfff"}', '/action'],
  [withMetadata('{"k":1,"k":1}'), '/metadata/k'],
  [withMetadata('{"k":1,"\\u006b":2}'), '/metadata/k'],
  ['{"category":"c","action":"a","category":"d"}', '/category'],
  [withMetadata('{"__proto__":1,"__proto__":2}'), '/metadata/__proto__'],
  ['{"category":"c","action":"a"', null, 'invalid_json'],
  ['{"category":"c","action":"a"}}', null, 'invalid_json'],
  ["{'category':'c','action':'a'}", null, 'invalid_json'],
  ['{"category":"c","action":"a",}', null, 'invalid_json'],
  ['{"category":"c","action":"a"} // done', null, 'invalid_json'],
  [withMetadata('{"k":NaN}'), null, 'invalid_json'],
  [withMetadata('{"k":01}'), null, 'invalid_json'],
  [withMetadata('{"k":"\t"}'), null, 'invalid_json'],
  [brokenUtf8, null, 'invalid_json'],
  [`\ufeff${JSON.stringify(GOOD)}`, null, 'invalid_json'],
  [Buffer.from(JSON.stringify(GOOD), 'utf16le'), null, 'invalid_json'],
]

test('rejects every invalid event with the path of its error, and stores nothing', async () => {
  const timestamps = TIMESTAMPS.map((timestamp): Refusal => [{ ...GOOD, timestamp }, '/timestamp'])
  for (const [body, path, code = 'invalid_request'] of [...FIELDS, ...timestamps]) {
    const { status, json, text } = await annals.call('POST', '/v1/events', { key, body })
    const about = `${JSON.stringify(body)} ${text}`
    assert.deepEqual([status, json.code], [400, code], about)
    assert.deepEqual([...new Set(json.details.map(pathOf))], [path], about)
  }
  assert.equal(await countStored(annals), 0)
})

test('rejects every body that strict JSON does not allow, and stores nothing', async () => {
  for (const [text, path, code = 'invalid_request'] of TEXTS) {
    const response = await annals.call('POST', '/v1/events', { key, text })
    const about = `${text.toString()} ${response.text}`
    assert.deepEqual([response.status, response.json.code], [400, code], about)
    assert.equal(response.json.details?.[0].path ?? null, path, about)
    assert.match(response.json.error, /\.$/, about)
  }
  assert.equal(await countStored(annals), 0)
})

test('reports several errors at once, up to a limit', async () => {
  const body = { category: '', action: 5, actor: { email: 'x' } }
  const { json } = await annals.call('POST', '/v1/events', { key, body })
  assert.deepEqual(json.details.map(pathOf), ['/category', '/action', '/actor/email'])
  const unknown = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`field${n}`, n]))
  const many = await annals.call('POST', '/v1/events', { key, body: { ...GOOD, ...unknown } })
  assert.equal(many.status, 400)
  assert(many.json.details.length <= 20)
})

test('stores the deepest value that is allowed', async () => {
  const { workspaceKey } = await annals.createCompany()
  const text = withMetadata(`{"k":${nested(30)}}`)
  const response = await annals.call('POST', '/v1/events', { key: workspaceKey, text })
  assert.equal(response.status, 201, response.text)
})

test('a body over 256 KiB gets 413, another media type 415, and no body 400', async () => {
  const before = await countStored(annals)
  const frame = JSON.stringify({ ...GOOD, metadata: { text: '' } }).length
  const metadata = { text: 'x'.repeat(256 * 1_024 - frame + 1) }
  const tooLarge = await annals.call('POST', '/v1/events', { key, body: { ...GOOD, metadata } })
  assert.deepEqual([tooLarge.status, tooLarge.json.code], [413, 'payload_too_large'])
  assert.equal(tooLarge.json.error, 'The body is larger than 262144 bytes. Send a smaller one.')
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
    const response = await annals.call('POST', '/v1/events', {
      key,
      text: JSON.stringify(GOOD),
      headers: { 'content-type': type },
    })
    assert.deepEqual([response.status, response.json.code], [415, 'unsupported_media_type'], type)
  }
  const none = await annals.call('POST', '/v1/events', { key })
  assert.deepEqual([none.status, none.json.code], [400, 'invalid_request'])
  assert.equal(await countStored(annals), before)
})

test('a body that claims to be compressed or in another charset gets 415 and is not stored', async () => {
  const before = await countStored(annals)
  const text = JSON.stringify(GOOD)
  const send = (headers: Record<string, string>) =>
    annals.call('POST', '/v1/events', { key, text, headers })
  for (const headers of [
    { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-type': 'application/json; charset="utf-7"' },
  ]) {
    const { status, json } = await send(headers)
    assert.deepEqual([status, json.code], [415, 'unsupported_media_type'])
  }
  assert.equal(await countStored(annals), before)
  for (const headers of [
    { 'content-type': 'application/json', 'content-encoding': 'identity' },
    { 'content-type': 'application/json; charset=UTF-8' },
  ]) {
    assert.equal((await send(headers)).status, 201)
  }
})

test('a company key cannot send events', async () => {
  const { companyKey } = await annals.createCompany()
  const { status, json } = await annals.call('POST', '/v1/events', { key: companyKey, body: GOOD })
  assert.deepEqual([status, json.code], [403, 'insufficient_scope'])
})

test('a row that only the database rejects fails only its own caller', async () => {
  const { connection } = annals.database
  const { workspaces } = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const planted = `alter table event add constraint planted check (category <> 'planted') not valid`
  await query(connection, planted)
  const responses = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const body = { category: index % 13 === 5 ? 'planted' : 'fine', action: `a${index}` }
      const workspaceKey = workspaces[index % 2]?.workspaceKey ?? ''
      const response = await annals.call('POST', '/v1/events', { key: workspaceKey, body })
      return { ...response, ...body }
    }),
  )
  for (const { category, status, json } of responses) {
    if (category === 'fine') assert.equal(status, 201)
    else assert.deepEqual([status, json.code], [400, 'invalid_request'])
  }
  const shown = await Promise.all(
    workspaces.map(({ workspaceKey }) => walkEvents(annals, workspaceKey)),
  )
  assert.deepEqual(
    idsOf(shown.flat()).toSorted(),
    idsOf(responses.filter(({ status }) => status === 201).map(({ json }) => json)).toSorted(),
  )
  await assertChainsHold(annals)
  await query(connection, 'alter table event drop constraint planted')
})

test('a rejected row does not affect another event with the same key', async () => {
  const { connection } = annals.database
  const { workspaceKey } = await annals.createCompany()
  await query(
    connection,
    `alter table event add constraint planted check (category <> 'planted') not valid`,
  )
  const categories = ['planted', 'fine', 'fine', 'planted', 'other']
  const responses = await Promise.all(
    categories.map((category) =>
      annals.call('POST', '/v1/events', {
        key: workspaceKey,
        body: { category, action: 'a', idempotencyKey: 'shared' },
      }),
    ),
  )
  await query(connection, 'alter table event drop constraint planted')
  const [stored, ...others] = await walkEvents(annals, workspaceKey)
  assert.equal(others.length, 0)
  for (const { status, json } of responses) {
    assert([200, 201, 400].includes(status))
    if (status !== 400) assert.equal(json.id, stored.id)
  }
  assert.equal(responses.filter(({ status }) => status === 201).length, 1)
  assert.notEqual(stored.category, 'planted')
})
