import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { JsonFault } from '../../src/platform/json/json-fault.ts'
import { parseStrictJson } from '../../src/platform/json/strict-json.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { assertErrorShape } from '../harness/http/error-shape.ts'
import { HttpThread } from '../harness/http/http-thread.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

// Time stands still, so no token comes back.
const annals = await startTestApp({ clock: manualClock().clock })
after(() => annals[Symbol.asyncDispose]())

const TOKENS = 2_000
const PATH = '/v1/events/batch'
const EVENT = '{"category":"c","action":"a"}'
const eventsOf = (count: number, event = EVENT) => Array.from({ length: count }, () => event)

const send = (key: string, text: string | Buffer) =>
  annals.call('POST', PATH, { key, text, headers: { 'content-type': 'application/json' } })

test('a batch costs one token per event, even if its JSON is invalid', async () => {
  const events = eventsOf(400).join(',')
  for (const [end, code] of [
    [']}', undefined],
    [',]}', 'invalid_json'],
    [']}}', 'invalid_json'],
    ['', 'invalid_json'],
    ['],"more":1}', 'invalid_request'],
  ] as const) {
    const { workspaceKey: key } = await annals.createCompany({ plan: 'PRO' })
    const { json, headers } = await send(key, `{"events":[${events}${end}`)
    assert.equal(json.code, code, end)
    const spent = TOKENS - Number(headers.get('ratelimit-remaining'))
    assert(spent >= 400 && spent <= 401, `${spent} tokens for ${end}`)
  }
})

test('rejects a batch without enough tokens before parsing its events', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'FREE' })
  const first = await send(key, `{"events":[${eventsOf(40).join(',')}]}`)
  assert.equal(first.status, 200, first.text)
  const { json, headers } = await send(key, `{"events":[${eventsOf(40).join(',')},]}`)
  assert.equal(json.code, 'rate_limited')
  assert(Number(headers.get('retry-after')) >= 1)
})

test('a batch of 4 MB without events costs as much as events of that size', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'PRO' })
  const { status, headers } = await send(key, `{"events":[],"more":"${'x'.repeat(4_000_000)}"}`)
  assert.equal(status, 400)
  assert.equal(headers.get('ratelimit-remaining'), String(TOKENS - 15))
})

/** A FREE key whose bucket is not full, so that a batch of many events is refused. */
async function createWithoutFullBucket(): Promise<string> {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'FREE' })
  assert.equal((await send(key, `{"events":[${EVENT}]}`)).status, 200)
  return key
}

function headOf(key: string, framing: string): string {
  return `POST ${PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`
}

test('a batch rejected after it was read has paid for its bytes, and the next ones are not read', async () => {
  const key = await createWithoutFullBucket()
  const body = `{"events":[${eventsOf(100).join(',')}]${' '.repeat(4_000_000)}}`
  for (const remaining of [34, 19, 4]) {
    const { json, headers } = await send(key, body)
    assert.equal(json.code, 'rate_limited')
    assert.equal(Number(headers.get('ratelimit-remaining')), remaining)
  }
  await using connection = new RawConnection(annals.url)
  connection.send(headOf(key, `content-length: ${body.length}`))
  const response = await connection.response()
  assertErrorShape(response, { status: 429, code: 'rate_limited' })
  assert(Number(response.headers.get('retry-after')) >= 1)
  // An ordinary batch still has its tokens.
  assert.equal((await send(key, `{"events":[${EVENT}]}`)).status, 200)
})

test('a chunked batch pays for its bytes while it arrives', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'FREE' })
  assert.equal((await send(key, `{"events":[${eventsOf(47).join(',')}]}`)).status, 200)
  await using connection = new RawConnection(annals.url)
  connection.send(headOf(key, 'transfer-encoding: chunked'))
  const chunk = ' '.repeat(65_536)
  for (let nth = 0; nth < 60; nth += 1) connection.send(`10000\r\n${chunk}\r\n`)
  assertErrorShape(await connection.response(), { status: 429, code: 'rate_limited' })
})

test('rejects an invalid batch with the first error of the whole body and its position', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'ENTERPRISE' })
  const long = `{"category":"c","action":"é","metadata":{"k":"${'é'.repeat(20_000)}"}}`
  const repeated = '{"category":"c","action":"a","metadata":{"k":1,"k":2}}'
  const texts = [
    ...['', ' ', '-', 'tru', '1 2', '{"a":]', '{"a" 1}', '{"a":1]', '"\t"', '01', 'NaN'].flatMap(
      (item) => [
        `{"events":[${EVENT},${item},${EVENT}]}`,
        `{"events":[${long}, ${item}]}`,
        `{ "events" : [ ${item} , ${EVENT}], "more": tru}`,
      ],
    ),
    `{"events":[${long}],}`,
    `{"events":[${long}]}}`,
    `{"events":[${long}]`,
    `{"events":[${long},${long}`,
    `{"events":[${long}],"more" 1}`,
    `{"more" 1,"events":[${long},oops]}`,
    `{"events":[${repeated},oops]}`,
    `{"events":[${long},${repeated}]}}`,
    `{"events":[${long},{"a":"\\u12"}]}`,
    `\ufeff{"events":[${EVENT}]}`,
    `{"events":[\ufeff1]}`,
    '{"events',
    '{"events":[ \v ]}',
    '{"events":[   ],}',
  ]
  const noUtf8 = Buffer.concat([Buffer.from(`{"events":[oops,"`), Buffer.from([0xff, 0x22])])
  for (const body of [...texts.map((text) => Buffer.from(text)), noUtf8]) {
    const expected = faultOf(body)
    const { status, json } = await send(key, body)
    assert.equal(status, 400)
    assert(String(json.error).endsWith(expected.message), `${json.error}; ${expected.message}`)
    assert.equal(json.code, expected.kind === 'syntax' ? 'invalid_json' : 'invalid_request')
    if (expected.kind === 'value') assert.equal(json.details[0].path, expected.path)
  }
})

function faultOf(body: Buffer): JsonFault {
  const { fault } = parseStrictJson(body)
  assert(fault, 'the body is valid')
  return fault
}

test('an invalid batch is parsed once', async () => {
  const { workspaceKey } = await annals.createCompany({ plan: 'ENTERPRISE' })
  const headers = {
    authorization: `Bearer ${workspaceKey}`,
    'content-type': 'application/json',
  }
  await using client = new HttpThread()
  const numbers = `{"category":"c","action":"a","metadata":{"k":[${'1,'.repeat(3_700)}1]}}`
  const events = eventsOf(150, numbers).join(',')
  const cpuMs = async (text: string): Promise<number> => {
    const body = Buffer.from(text)
    const tries: number[] = []
    for (let nth = 0; nth < 3; nth += 1) {
      const before = process.threadCpuUsage()
      const { status } = await client.call({
        url: annals.url + PATH,
        method: 'POST',
        headers,
        body,
      })
      const { user, system } = process.threadCpuUsage(before)
      assert.equal(status, 400)
      tries.push((user + system) / 1_000)
    }
    return Math.min(...tries)
  }
  // Without its end, there are no items, and the text is parsed as a whole.
  const wholeMs = await cpuMs(`{"events":[${events}`)
  const itemsMs = await cpuMs(`{"events":[${events}]}}`)
  assert(itemsMs < wholeMs * 0.8, `${itemsMs} ms, and ${wholeMs} ms as a whole`)
})
