import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually } from '../harness/timing/eventually.ts'
import { assertChainsHold, walkEvents } from '../harness/event/ledger.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { sendRaw } from '../harness/http/raw-http.ts'
import { type TestResponse, startTestApp, type TestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

type Input = Record<string, unknown>

const send = (key: string, body: Input, node: TestApp = annals) =>
  node.call('POST', '/v1/events', { key, body })
const sendBatch = (key: string, events: Input[], node: TestApp = annals) =>
  node.call('POST', '/v1/events/batch', { key, body: { events } })

/** `header` is sent as UTF-8. */
const sendWithHeader = (key: string, header: string | Buffer, body: Input) =>
  annals.call('POST', '/v1/events', {
    key,
    body,
    headers: { 'idempotency-key': Buffer.from(header).toString('latin1') },
  })

const eventOf = (idempotencyKey: string, more: Input = {}): Input => ({
  category: 'c',
  action: 'a',
  idempotencyKey,
  ...more,
})

const flags = ({ headers }: TestResponse) => [
  headers.get('x-idempotent-replay'),
  headers.get('x-idempotency-mismatch'),
]

const pathOf = ({ path }: { path: string }) => path

/** One of the responses is 201, the others are 200 with the same id, and one event is stored. */
async function assertOneEvent(key: string, responses: readonly TestResponse[]): Promise<void> {
  const codes = responses.map(({ status }) => status).toSorted((a, b) => b - a)
  assert.deepEqual(codes, [201, ...responses.slice(1).map(() => 200)])
  const ids = new Set(responses.map(({ json }) => json.id))
  assert.deepEqual(
    (await walkEvents(annals, key)).map(({ id }) => id),
    [...ids],
  )
  for (const response of responses) {
    assert.equal(flags(response)[0], response.status === 200 ? 'true' : null)
  }
  await assertChainsHold(annals)
}

test('returns 200 with the first id when an idempotency key is replayed', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const body = eventOf('k', { actor: { id: 'a' }, metadata: { b: 1, a: [2] } })
  const first = await send(key, body)
  const second = await send(key, body)
  const third = await send(key, body)
  assert.deepEqual([first.status, second.status, third.status], [201, 200, 200])
  assert.deepEqual(second.json, first.json)
  assert.deepEqual(flags(first), [null, null])
  assert.deepEqual(flags(second), ['true', null])
  await assertOneEvent(key, [first, second, third])
})

test('another body with a stored key changes nothing, and the caller gets an error', async () => {
  const { workspaceKey: key, project } = await annals.createCompany()
  const first = await send(key, eventOf('k', { metadata: { a: 1 } }))
  const before = await walkEvents(annals, key)
  const others: Input[] = [
    eventOf('k'),
    eventOf('k', { metadata: { a: 2 } }),
    eventOf('k', { metadata: { a: 1 }, category: 'other' }),
    eventOf('k', { metadata: { a: 1 }, action: 'other' }),
    eventOf('k', { metadata: { a: 1 }, timestamp: '2020-01-01T00:00:00Z' }),
    eventOf('k', { metadata: { a: 1 }, projectId: project.id }),
    eventOf('k', { metadata: { a: 1 }, actor: {} }),
    eventOf('k', { metadata: { a: 1 }, resource: { id: 'x' } }),
    eventOf('k', { actor: { id: 'a' } }),
  ]
  for (const body of others) {
    const response = await send(key, body)
    assert.equal(response.status, 200, JSON.stringify(body))
    assert.equal(response.json.id, first.json.id)
    assert.deepEqual(flags(response), ['true', 'true'], JSON.stringify(body))
  }
  assert.deepEqual(await walkEvents(annals, key), before)
})

test('the same event in another notation counts as the same body', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const text = (members: string) => `{"category":"c","action":"a","idempotencyKey":"k",${members}}`
  const spellings = [
    '"metadata":{"a":1,"b":[true]},"timestamp":"2026-03-01T12:00:00Z"',
    '"timestamp":"2026-03-01T13:00:00.0004+01:00","metadata":{"b":[true],"a":1.0}',
    '"metadata":{"\\u0061":1e0,"b":[ true ]},"timestamp":"2026-03-01t12:00:00z"',
  ]
  for (const [index, spelling] of spellings.entries()) {
    const response = await annals.call('POST', '/v1/events', { key, text: text(spelling) })
    assert.equal(response.status, index === 0 ? 201 : 200, response.text)
    assert.equal(flags(response)[1], null, spelling)
  }
})

const PLAIN = { category: 'c', action: 'a' }

test('the same key in the header and in the body is one key, in both directions', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const more = { actor: { id: 'a' }, metadata: { b: 1, a: [2] } }
  const long = '🎈'.repeat(255)
  for (const name of ['k', 'K', 'a, b', '"quoted"', 'é', 'e\u0301', long]) {
    const first = await sendWithHeader(key, name, { ...PLAIN, ...more })
    const responses = [
      await send(key, eventOf(name, more)),
      await sendWithHeader(key, name, { ...PLAIN, ...more }),
      await sendWithHeader(key, name, eventOf(name, more)),
    ]
    assert.deepEqual([first.status, ...flags(first)], [201, null, null], name)
    for (const response of responses) {
      assert.deepEqual([response.status, ...flags(response)], [200, 'true', null], name)
      assert.deepEqual(response.json, first.json)
    }
  }
  const inBody = await send(key, eventOf('body first', more))
  const replay = await sendWithHeader(key, 'body first', { ...PLAIN, ...more })
  assert.deepEqual([replay.status, ...flags(replay)], [200, 'true', null])
  assert.deepEqual(replay.json, inBody.json)
  const other = await sendWithHeader(key, 'body first', PLAIN)
  assert.deepEqual([other.status, ...flags(other)], [200, 'true', 'true'])
  assert.equal((await walkEvents(annals, key)).length, 8)
  await assertChainsHold(annals)
})

test('a key in the header replays an event of a batch, and vice versa', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const batch = await sendBatch(key, [eventOf('k')])
  const single = await sendWithHeader(key, 'k', PLAIN)
  assert.deepEqual([single.status, ...flags(single)], [200, 'true', null])
  assert.equal(single.json.id, batch.json.results[0].id)
  const { json: first } = await sendWithHeader(key, 'header first', PLAIN)
  const { json: second } = await sendBatch(key, [eventOf('header first')])
  assert.deepEqual(second.results, [{ id: first.id, status: 200 }])
})

test('rejects different keys in the header and in the body', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (const [header, body] of [
    ['k', 'other'],
    ['k', 'K'],
    ['é', 'e\u0301'],
    ['k', 'k '],
  ] as const) {
    const response = await sendWithHeader(key, header, eventOf(body))
    assert.deepEqual([response.status, response.json.code], [400, 'invalid_request'], response.text)
    assert.match(response.json.error, /Idempotency-Key header.*idempotencyKey/)
    assert.deepEqual(response.json.details.map(pathOf), ['Idempotency-Key', '/idempotencyKey'])
  }
  assert.deepEqual(await walkEvents(annals, key), [])
})

test('rejects an idempotency key header that is empty, too long or not UTF-8', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const bad: [header: string | Buffer, message: RegExp][] = [
    ['', /must not be empty/],
    ['  ', /must not be empty/],
    ['k'.repeat(256), /255 characters/],
    ['🎈'.repeat(256), /255 characters/],
    ['k'.repeat(4_000), /255 characters/],
    [Buffer.from('caf\xe9', 'latin1'), /must be valid UTF-8/],
    [Buffer.from('\xed\xa0\x80', 'latin1'), /must be valid UTF-8/],
  ]
  for (const [header, message] of bad) {
    for (const body of [PLAIN, eventOf('k')]) {
      const response = await sendWithHeader(key, header, body)
      assert.deepEqual(
        [response.status, response.json.code],
        [400, 'invalid_request'],
        response.text,
      )
      assert.deepEqual(response.json.details.map(pathOf), ['Idempotency-Key'])
      assert.match(response.json.details[0].message, message)
    }
  }
  assert.deepEqual(await walkEvents(annals, key), [])
})

test('rejects a repeated idempotency key header, even with the same value', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const body = JSON.stringify(eventOf('k'))
  for (const repeated of [
    ['Idempotency-Key: k', 'Idempotency-Key: k'],
    ['Idempotency-Key: k', 'idempotency-key: other'],
    ['IDEMPOTENCY-KEY: k', 'Idempotency-Key:'],
    ['Idempotency-Key:', 'Idempotency-Key:'],
  ]) {
    const head = [
      'POST /v1/events HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      ...repeated,
    ]
    const response = await sendRaw(annals.url, `${head.join('\r\n')}\r\n\r\n${body}`)
    const json = JSON.parse(response.body)
    assert.deepEqual([response.status, json.code], [400, 'invalid_request'], response.body)
    assert.deepEqual(json.details, [{ path: 'Idempotency-Key', message: 'must appear only once' }])
  }
  assert.deepEqual(await walkEvents(annals, key), [])
})

test('rejects a batch with an idempotency key header, because every event has its own key', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (const header of ['k', '']) {
    const response = await annals.call('POST', '/v1/events/batch', {
      key,
      body: { events: [PLAIN, eventOf('k')] },
      headers: { 'idempotency-key': header },
    })
    assert.deepEqual([response.status, response.json.code], [400, 'invalid_request'], response.text)
    assert.deepEqual(response.json.details.map(pathOf), ['Idempotency-Key'])
  }
  assert.deepEqual(await walkEvents(annals, key), [])
})

test('a batch reports which of its events differ from the stored body', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const { json: stored } = await send(key, eventOf('k'))
  const { json } = await sendBatch(key, [
    eventOf('k', { action: 'other' }),
    eventOf('k'),
    eventOf('new'),
    eventOf('new', { action: 'other' }),
    eventOf('new'),
  ])
  const { id } = json.results[2]
  assert.deepEqual(json.results, [
    { id: stored.id, status: 200, mismatch: true },
    { id: stored.id, status: 200 },
    { id, status: 201 },
    { id, status: 200, mismatch: true },
    { id, status: 200 },
  ])
  assert.equal((await walkEvents(annals, key)).length, 2)
})

test('keys are compared exactly, and the same key in two workspaces means two events', async () => {
  const { workspaces } = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const keys = ['k', 'K', ' k', 'k ', 'é', 'e\u0301', '🎈', '0']
  for (const { workspaceKey } of workspaces) {
    for (const idempotencyKey of keys) {
      assert.equal((await send(workspaceKey, eventOf(idempotencyKey))).status, 201)
    }
    assert.equal((await walkEvents(annals, workspaceKey)).length, keys.length)
  }
})

test('concurrent duplicates are stored as one event', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await assertOneEvent(
    key,
    await Promise.all(Array.from({ length: 30 }, () => send(key, eventOf('k')))),
  )
})

test('of different concurrent bodies with one key, one is stored and the others get an error', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const responses = await Promise.all(
    Array.from({ length: 12 }, (_, index) => send(key, eventOf('k', { action: `a${index % 3}` }))),
  )
  await assertOneEvent(key, responses)
  const [stored] = await walkEvents(annals, key)
  for (const [index, response] of responses.entries()) {
    const isOther = stored.action !== `a${index % 3}`
    assert.equal(flags(response)[1], isOther ? 'true' : null)
  }
})

test('a replay beside a different body with its key is still compared with the stored event', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await send(key, eventOf('k', { action: 'stored' }))
  const actions = ['other', 'stored', 'third', 'stored', 'other']
  const responses = await Promise.all(actions.map((action) => send(key, eventOf('k', { action }))))
  assert.deepEqual(
    responses.map((response) => flags(response)[1]),
    ['true', null, 'true', null, 'true'],
  )
})

test('a replay does not delay new events of its workspace, in one batch or in others', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const old = await sendBatch(key, [eventOf('k0'), eventOf('k1')])
  const events = Array.from({ length: 40 }, (_, index) => eventOf(`k${index}`))
  const responses = await Promise.all(events.map((event) => send(key, event)))
  assert.deepEqual(
    responses.map(({ status }) => status),
    events.map((_, index) => (index < 2 ? 200 : 201)),
  )
  assert.deepEqual(
    [responses[0]?.json.id, responses[1]?.json.id],
    [old.json.results[0].id, old.json.results[1].id],
  )
  assert.equal((await walkEvents(annals, key)).length, 40)
  await assertChainsHold(annals)
})

test('duplicates in a batch are stored as one event, even across two commits', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  // A commit takes 256 events, so the second half of this call is a separate commit.
  const events = Array.from({ length: 500 }, (_, index) => eventOf(`k${index % 100}`))
  const [first, second] = await Promise.all([sendBatch(key, events), sendBatch(key, events)])
  const results = [...first.json.results, ...second.json.results]
  assert.equal(results.filter(({ status }) => status === 201).length, 100)
  assert.equal(results.filter(({ status }) => status === 200).length, 900)
  for (const [index, { id }] of results.entries()) assert.equal(id, results[index % 100].id)
  assert.equal((await walkEvents(annals, key)).length, 100)
  await assertChainsHold(annals)
})

test('batches sealed ahead of one that ends unexpectedly are stored once, in one chain', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  assert.equal((await send(key, eventOf('old'))).status, 201)
  const fresh = (call: number) =>
    Array.from({ length: 500 }, (_, nth) => eventOf(`call ${call}, event ${nth}`))
  // The replay leaves the head of its commit unchanged, while the next full batches are already
  // sealed.
  const responses = await Promise.all(
    [0, 1, 2, 3].map((call) => sendBatch(key, [...fresh(call).slice(1), eventOf('old')])),
  )
  for (const { status, json } of responses) {
    assert.equal(status, 200)
    const codes = json.results.map((result: TestResponse['json']) => result.status)
    assert.deepEqual(codes, [...Array(499).fill(201), 200])
  }
  const stored = await walkEvents(annals, key)
  assert.equal(stored.length, 1 + 4 * 499)
  const acknowledged = new Set(
    responses.flatMap(({ json }) => json.results.map((result: TestResponse['json']) => result.id)),
  )
  assert.deepEqual(new Set(stored.map(({ id }) => id)), acknowledged)
  await assertChainsHold(annals)
})

test('concurrent duplicates on two nodes are stored as one event', async () => {
  await using other = await startTestApp({ databaseUrl: annals.database.url })
  const { workspaces } = await annals.createCompany({ workspaces: ['One', 'Two', 'Three'] })
  for (let round = 0; round < 5; round += 1) {
    const responses = await Promise.all(
      Array.from({ length: 48 }, (_, index) => {
        const key = workspaces[index % 3]?.workspaceKey ?? ''
        return send(key, eventOf(`round ${round}/${index % 12}`), index % 8 < 4 ? annals : other)
      }),
    )
    assert(responses.every(({ status }) => status === 200 || status === 201))
    assert.equal(responses.filter(({ status }) => status === 201).length, 12)
    for (const [index, { json }] of responses.entries()) {
      assert.equal(json.id, responses[index % 12]?.json.id)
    }
  }
  for (const { workspaceKey } of workspaces) {
    assert.equal((await walkEvents(annals, workspaceKey)).length, 20)
  }
  await assertChainsHold(annals)
})

test('after a cut between commit and response, a retry finds its event, stored once', async () => {
  await using proxy = await PgProxy.listen(annals.database.connection)
  const { user, password, database } = annals.database.connection
  const url = `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${proxy.port}/${database}`
  await using node = await startTestApp({ databaseUrl: url })
  const { workspaceKey: key } = await annals.createCompany()
  assert.equal((await send(key, eventOf('before'), node)).status, 201)
  proxy.cutOnceAt('append-events', 'after')
  const cut = await send(key, eventOf('k'), node)
  assert.equal(proxy.isArmed, false)
  assert.deepEqual([cut.status, cut.json.code], [503, 'unavailable'])
  assert.match(cut.json.error, /same idempotencyKey/)
  assert(Number(cut.headers.get('retry-after')) >= 1)
  assert.equal((await walkEvents(annals, key)).length, 2, 'the commit had succeeded')
  const retry = await retryWhile503(() => send(key, eventOf('k'), node))
  assert.equal(retry.status, 200, retry.text)
  assert.deepEqual(flags(retry), ['true', null])
  assert.equal((await walkEvents(annals, key)).length, 2)
  await assertChainsHold(annals)
})

test('after a cut before the commit, a retry stores the event', async () => {
  await using proxy = await PgProxy.listen(annals.database.connection)
  const { user, password, database } = annals.database.connection
  const url = `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${proxy.port}/${database}`
  await using node = await startTestApp({ databaseUrl: url })
  const { workspaceKey: key } = await annals.createCompany()
  assert.equal((await send(key, eventOf('before'), node)).status, 201)
  proxy.cutOnceAt('append-events', 'before')
  assert.equal((await send(key, eventOf('k'), node)).status, 503)
  const retry = await retryWhile503(() => send(key, eventOf('k'), node))
  assert.equal(retry.status, 201, retry.text)
  assert.equal((await walkEvents(annals, key)).length, 2)
  await assertChainsHold(annals)
})

/** Retries like a client until the service is back. Each attempt waits for its response. */
async function retryWhile503(attempt: () => Promise<TestResponse>): Promise<TestResponse> {
  return await eventually(async () => {
    const response = await attempt()
    assert.notEqual(response.status, 503, response.text)
    return response
  })
}
