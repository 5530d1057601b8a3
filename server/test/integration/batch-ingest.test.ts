import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { assertChainsHold, countStored, walkEvents } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const { clock, advance } = manualClock()
const annals = await startTestApp({ clock })
after(() => annals[Symbol.asyncDispose]())

type Result = TestResponse['json']

const GOOD = { category: 'c', action: 'a' }
const goods = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ category: 'c', action: `a${index}` }))

const send = (key: string, body: unknown) => annals.call('POST', '/v1/events/batch', { key, body })
const sendText = (key: string, text: string | Buffer) =>
  annals.call('POST', '/v1/events/batch', { key, text })
const statuses = ({ json }: TestResponse) => json.results.map(({ status }: Result) => status)

test('a batch accepts exactly the actors and timestamps that a single event accepts', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const events = [
    ...['jörg@x.example', 'a..b@x.example', '"a b"@x.example', 'ana@müller.example', 'x'].map(
      (email) => ({ ...GOOD, actor: { email } }),
    ),
    ...['2026-01-01T23:59:60Z', '2026-01-01T10:00:00+25:00', '2026-01-01'].map((timestamp) => ({
      ...GOOD,
      timestamp,
    })),
  ]
  const singles: number[] = []
  for (const body of events) {
    singles.push((await annals.call('POST', '/v1/events', { key, body })).status)
  }
  assert.deepEqual(statuses(await send(key, { events })), singles)
  assert(singles.includes(201) && singles.includes(400))
})

for (const count of [1, 2, 257, 500]) {
  test(`stores ${count} events in order, and returns their results in order`, async () => {
    const { workspaceKey: key } = await annals.createCompany()
    const response = await send(key, { events: goods(count) })
    assert.equal(response.status, 200, response.text)
    assert.deepEqual(Object.keys(response.json), ['results'])
    assert(
      response.json.results.every((result: Result) => Object.keys(result).join() === 'id,status'),
    )
    assert.deepEqual(
      statuses(response),
      goods(count).map(() => 201),
    )
    const chain = (await walkEvents(annals, key)).toSorted((x, y) => x.seq - y.seq)
    assert.deepEqual(
      chain.map(({ id, action }) => [id, action]),
      goods(count).map(({ action }, index) => [response.json.results[index].id, action]),
    )
    assert.equal(new Set(chain.map(({ traceId }) => traceId)).size, 1)
    assert.equal(chain[0].traceId, response.headers.get('x-trace-id'))
    await assertChainsHold(annals)
  })
}

test('rejects a call without events, with more than 500, or with an invalid frame', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const before = await countStored(annals)
  const frames: [body: unknown, path: string][] = [
    [{ events: [] }, '/events'],
    [{ events: goods(501) }, '/events'],
    [{}, '/events'],
    [{ events: {} }, '/events'],
    [{ events: null }, '/events'],
    [{ events: 'text' }, '/events'],
    [{ events: [GOOD], more: 1 }, '/more'],
    [[GOOD], ''],
    [null, ''],
    [GOOD, '/events'],
  ]
  for (const [body, path] of frames) {
    const { status, json, text } = await send(key, body)
    assert.deepEqual([status, json.code], [400, 'invalid_request'], text)
    assert(
      json.details.some((detail: Result) => detail.path === path),
      text,
    )
  }
  assert.equal((await annals.call('POST', '/v1/events/batch', { key })).status, 400)
  assert.equal(await countStored(annals), before)
})

/** An item as text, and its expected result. */
const BAD: readonly [item: string, code: string, path: string][] = [
  ['{}', 'invalid_request', '/category'],
  ['null', 'invalid_request', ''],
  ['5', 'invalid_request', ''],
  ['[]', 'invalid_request', ''],
  ['"text"', 'invalid_request', ''],
  ['{"category":"","action":"a"}', 'invalid_request', '/category'],
  ['{"category":"c","action":"a","x":1}', 'invalid_request', '/x'],
  ['{"category":"c","action":"a","actor":{"x":1}}', 'invalid_request', '/actor/x'],
  ['{"category":"c","action":"a","actor":{"email":"x"}}', 'invalid_request', '/actor/email'],
  ['{"category":"c","action":"a","timestamp":"now"}', 'invalid_request', '/timestamp'],
  [
    '{"category":"c","action":"a","timestamp":"9999-01-01T00:00:00Z"}',
    'invalid_request',
    '/timestamp',
  ],
  [`{"category":"c","action":"a","projectId":"${newId()}"}`, 'unknown_project', '/projectId'],
  // Errors that only the strict parser detects.
  ['{"category":"c","action":"a","category":"d"}', 'invalid_request', '/category'],
  ['{"category":"c","action":"a","metadata":{"k":1,"k":2}}', 'invalid_request', '/metadata/k'],
  ['{"category":"c","action":"a","metadata":{"k":1e400}}', 'invalid_request', '/metadata/k'],
  [
    '{"category":"c","action":"a","metadata":{"k":[12345678901234567890]}}',
    'invalid_request',
    '/metadata/k/0',
  ],
  ['{"category":"c","action":"a","metadata":{"k":"\\u0000"}}', 'invalid_request', '/metadata/k'],
  ['{"category":"c","action":"\\ud800"}', 'invalid_request', '/action'],
  [
    `{"category":"c","action":"a","metadata":{"k":${'['.repeat(31)}${']'.repeat(31)}}}`,
    'invalid_request',
    `/metadata/k${'/0'.repeat(30)}`,
  ],
]

test('a bad item gets an error in its position, without affecting the others', async () => {
  for (const [item, code, path] of BAD) {
    const { workspaceKey: key } = await annals.createCompany()
    const text = `{"events":[${JSON.stringify(GOOD)}, ${item} ,${JSON.stringify(GOOD)}]}`
    const response = await sendText(key, text)
    assert.equal(response.status, 200, `${item} ${response.text}`)
    assert.deepEqual(statuses(response), [201, 400, 201], item)
    const { error, details, ...rest } = response.json.results[1]
    assert.deepEqual(rest, { status: 400, code }, item)
    assert.match(error, /\.$/)
    assert.equal(details[0].path, path, item)
    assert.equal((await walkEvents(annals, key)).length, 2, item)
  }
  await assertChainsHold(annals)
})

test('many bad items among good ones each get their own error', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const items = BAD.flatMap(([item]) => [item, JSON.stringify(GOOD)])
  const response = await sendText(key, `{"events":[${items.join(',')}]}`)
  assert.deepEqual(
    statuses(response),
    items.map((_, index) => (index % 2 === 0 ? 400 : 201)),
  )
  assert.equal((await walkEvents(annals, key)).length, BAD.length)
})

test('an item can be nested as deeply as a single event', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const deep = `{"category":"c","action":"a","metadata":{"k":${'['.repeat(30)}${']'.repeat(30)}}}`
  assert.deepEqual(statuses(await sendText(key, `{"events":[${deep}]}`)), [201])
})

test('an error in one item does not hide errors in the frame', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const before = await countStored(annals)
  const item = '{"category":"c","action":"a","metadata":{"k":1,"k":2}}'
  const good = JSON.stringify(GOOD)
  const texts = [
    `{"events":[${item}],"more":1}`,
    `{"events":[${item}],"more":[${good}]}`,
    `{"more":[${good}],"events":[${item}]}`,
    `{"events":[${item}],"events":[${good}]}`,
    `{"events":[${item}],"more":1e400}`,
    `{"events":{"0":${item}}}`,
    // Not JSON at all, further on.
    `{"events":[${item},]}`,
    `{"events":[${item},${good}`,
    `{"events":[${item},${good}]}}`,
  ]
  for (const text of texts) {
    const response = await sendText(key, text)
    assert.deepEqual([response.status, response.json.code], [400, 'invalid_request'], text)
  }
  const broken = await sendText(key, `{"events":[${good},]}`)
  assert.deepEqual([broken.status, broken.json.code], [400, 'invalid_json'])
  assert.equal(await countStored(annals), before)
})

test('a call with only bad items stores nothing', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const response = await send(key, { events: [{}, null, { category: 'c' }] })
  assert.deepEqual([response.status, statuses(response)], [200, [400, 400, 400]])
  assert.deepEqual(await walkEvents(annals, key), [])
})

test('rejects a body of a million items because of their number, without reading each', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (const [item, count] of [
    ['1', 2_000_000],
    ['1e400', 690_000],
  ] as const) {
    const text = `{"events":[${Array.from({ length: count }, () => item).join(',')}]}`
    const before = process.threadCpuUsage()
    const response = await sendText(key, text)
    const { user, system } = process.threadCpuUsage(before)
    assert.deepEqual([response.status, response.json.details[0].path], [400, '/events'])
    assert(user + system < 2_000_000, `${(user + system) / 1_000} ms of CPU time`)
  }
})

test('500 unknown projects get 500 errors', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const events = goods(500).map((event) => ({ ...event, projectId: newId() }))
  const response = await send(key, { events })
  assert.equal(response.status, 200, response.text)
  assert(response.json.results.every((result: Result) => result.code === 'unknown_project'))
})

test('a row that only the database rejects gets an error in its position', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const { connection } = annals.database
  await query(
    connection,
    `alter table event add constraint planted check (category <> 'planted') not valid`,
  )
  const events = goods(20).map((event, index) =>
    index % 7 === 3 ? { ...event, category: 'planted' } : event,
  )
  const response = await send(key, { events })
  await query(connection, 'alter table event drop constraint planted')
  assert.deepEqual(
    statuses(response),
    events.map(({ category }) => (category === 'planted' ? 400 : 201)),
  )
  await assertChainsHold(annals)
})

test('accepts a body of up to 4 MiB, and rejects a larger one with 413', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const pad = 'x'.repeat(32_000)
  const events = Array.from({ length: 130 }, () => ({ ...GOOD, metadata: { pad } }))
  const text = JSON.stringify({ events })
  const room = 4 * 1_024 * 1_024 - text.length
  assert(room > 0)
  assert.equal((await sendText(key, text + ' '.repeat(room))).status, 200)
  const tooLarge = await sendText(key, text + ' '.repeat(room + 1))
  assert.deepEqual([tooLarge.status, tooLarge.json.code], [413, 'payload_too_large'])
})

test('stores an event of up to 256 KiB, and rejects only the larger ones', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const itemOf = (bytes: number) => {
    const frame = JSON.stringify({ ...GOOD, metadata: { text: '' } })
    return frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`)
  }
  const good = JSON.stringify(GOOD)
  const limit = 256 * 1_024
  // The whitespace between items belongs to none of them.
  const items = [good, ` \n${itemOf(limit)} `, itemOf(limit + 1), good]
  const response = await sendText(key, `{"events":[${items.join(',')}]}`)
  assert.deepEqual(statuses(response), [201, 201, 400, 201], response.text)
  const { code, error } = response.json.results[2]
  assert.equal(code, 'invalid_request')
  assert.match(error, /larger than 262144 bytes/)
  assert.equal((await walkEvents(annals, key)).length, 3)
})

test('a call costs one token per event, valid or not', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'FREE' })
  const first = await send(key, { events: [...goods(29), {}] })
  assert.equal(first.headers.get('ratelimit-remaining'), '20')
  const second = await send(key, { events: goods(21) })
  assert.deepEqual([second.status, second.json.code], [429, 'rate_limited'])
  assert(Number(second.headers.get('retry-after')) >= 1)
  assert.equal((await walkEvents(annals, key)).length, 29, 'none of it was stored')
  advance(1_000)
  assert.equal((await send(key, { events: goods(50) })).status, 200)
})

test('replays have their own status, within a call and across calls', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const keyed = (idempotencyKey: string) => ({ ...GOOD, idempotencyKey })
  const first = await send(key, { events: [keyed('a'), keyed('b'), keyed('a'), GOOD, GOOD] })
  assert.deepEqual(statuses(first), [201, 201, 200, 201, 201])
  assert.equal(first.json.results[2].id, first.json.results[0].id)
  const second = await send(key, { events: [keyed('c'), keyed('b')] })
  assert.deepEqual(statuses(second), [201, 200])
  assert.equal(second.json.results[1].id, first.json.results[1].id)
  const single = await annals.call('POST', '/v1/events', { key, body: keyed('c') })
  assert.deepEqual([single.status, single.json.id], [200, second.json.results[0].id])
  assert.equal((await walkEvents(annals, key)).length, 5)
})

test('a company key cannot send events', async () => {
  const { companyKey } = await annals.createCompany()
  const { status, json } = await send(companyKey, { events: [GOOD] })
  assert.deepEqual([status, json.code], [403, 'insufficient_scope'])
})
