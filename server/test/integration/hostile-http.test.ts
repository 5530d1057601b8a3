import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { assertErrorShape } from '../harness/http/error-shape.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { ABORTS, RawConnection, sendRaw } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const logLines: { event?: string; level: number }[] = []
const annals = await startTestApp({
  logger: pino({ level: 'debug' }, { write: (line) => void logLines.push(JSON.parse(line)) }),
})
after(() => annals[Symbol.asyncDispose]())
/** Only for requests that don't end, because on a busy machine the others can take this long. */
const impatient = await startTestApp({
  databaseUrl: annals.database.url,
  timeouts: { headersMs: 300, requestMs: 1_000, checkEveryMs: 50 },
})
after(() => impatient[Symbol.asyncDispose]())
const { workspaceKey } = await annals.createCompany()
const bearer = `authorization: Bearer ${workspaceKey}\r\n`

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`
const post = (headers: string, body = '') =>
  `POST /v1/events HTTP/1.1\r\nhost: x\r\n${bearer}${headers}\r\n${body}`
const json = 'content-type: application/json\r\n'
const bytes = (text: string) => Buffer.from(text, 'latin1')

const BAD = { status: 400, code: 'invalid_request' }
const TOO_LARGE = { status: 431, code: 'headers_too_large' }

/** Requests that the parser rejects: the connection ends after the response. */
const UNREADABLE: Record<string, { sent: string; expected: { status: number; code: string } }> = {
  'garbage bytes': { sent: '\x00\x01\x02\xff\xfe\r\n\r\n', expected: BAD },
  'a TLS greeting': { sent: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', expected: BAD },
  'HTTP/2 without TLS': { sent: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', expected: BAD },
  'a version that does not exist': { sent: 'GET /health HTTP/9.9\r\n\r\n', expected: BAD },
  'a method that does not exist': {
    sent: 'BREW /health HTTP/1.1\r\nhost: x\r\n\r\n',
    expected: BAD,
  },
  'a method in lower case': { sent: 'get /health HTTP/1.1\r\nhost: x\r\n\r\n', expected: BAD },
  'bare line feeds': { sent: 'GET /health HTTP/1.1\nhost: x\n\n', expected: BAD },
  'a folded header': { sent: get('/health', 'x: a\r\n b\r\n'), expected: BAD },
  'a blank before the colon': { sent: 'GET / HTTP/1.1\r\nhost : x\r\n\r\n', expected: BAD },
  'a null byte in a header': { sent: get('/health', 'x: a\x00b\r\n'), expected: BAD },
  'a null byte in the path': { sent: get('/\x00'), expected: BAD },
  'raw bytes in the path': { sent: get('/h\xe9alth'), expected: BAD },
  'a chunk without a size': {
    sent: post('transfer-encoding: chunked\r\n', 'ZZ\r\n'),
    expected: BAD,
  },
  'an endless chunk extension': {
    sent: post(`${json}transfer-encoding: chunked\r\n`, `1;${'e'.repeat(40_000)}`),
    expected: { status: 413, code: 'payload_too_large' },
  },
  'an unsupported encoding': { sent: post('transfer-encoding: gzip\r\n'), expected: BAD },
  'a length beside chunks': {
    sent: post('content-length: 5\r\ntransfer-encoding: chunked\r\n', '0\r\n\r\n'),
    expected: BAD,
  },
  'two lengths': {
    sent: post('content-length: 5\r\ncontent-length: 6\r\n', 'hello'),
    expected: BAD,
  },
  'a negative length': { sent: post('content-length: -5\r\n'), expected: BAD },
  'a length that is no number': { sent: post('content-length: 0x5\r\n', 'hello'), expected: BAD },
  'a header of 70 kB': {
    sent: get('/health', `x: ${'a'.repeat(70_000)}\r\n`),
    expected: TOO_LARGE,
  },
  '3,000 headers': { sent: get('/health', 'name: value\r\n'.repeat(3_000)), expected: TOO_LARGE },
  'a path of 70 kB': { sent: get(`/${'a'.repeat(70_000)}`), expected: TOO_LARGE },
  'an unknown expectation': { sent: post('expect: the-unexpected\r\n'), expected: BAD },
  'the same length twice': {
    sent: post('content-length: 5\r\ncontent-length: 5\r\n', 'hello'),
    expected: BAD,
  },
  'a list of lengths': { sent: post('content-length: 5, 5\r\n', 'hello'), expected: BAD },
  'an encoding before chunks': {
    sent: post(`${json}transfer-encoding: gzip, chunked\r\n`, '2\r\n{}\r\n0\r\n\r\n'),
    expected: BAD,
  },
  'chunks twice': {
    sent: post(`${json}transfer-encoding: chunked\r\n`.repeat(2), '0\r\n\r\n'),
    expected: BAD,
  },
  'chunks in HTTP/1.0': {
    sent: post(`${json}transfer-encoding: chunked\r\n`, '0\r\n\r\n').replace('1.1', '1.0'),
    expected: BAD,
  },
  'a version that needs another parser': {
    sent: get('/health').replace('1.1', '2.0'),
    expected: BAD,
  },
  'HTTP/0.9': { sent: 'GET /health\r\n\r\n', expected: BAD },
  'no Host header': { sent: 'GET /health HTTP/1.1\r\n\r\n', expected: BAD },
  'two Host headers': { sent: get('/health', 'Host: x\r\n'), expected: BAD },
  'two Host headers in HTTP/1.0': {
    sent: get('/health', 'host: y\r\n').replace('1.1', '1.0'),
    expected: BAD,
  },
  'a second Host header after 2,500 others': {
    sent: get('/health', `${'a:\r\n'.repeat(2_500)}host: y\r\n`),
    expected: TOO_LARGE,
  },
  'a Host with a blank': { sent: 'GET /health HTTP/1.1\r\nhost: a b\r\n\r\n', expected: BAD },
  'a Host with a user': { sent: 'GET /health HTTP/1.1\r\nhost: u@a\r\n\r\n', expected: BAD },
  'a URL as Host': { sent: 'GET /health HTTP/1.1\r\nhost: http://a\r\n\r\n', expected: BAD },
  'two Content-Type headers': {
    sent: post(`${json}content-type: text/plain\r\ncontent-length: 2\r\n`, '{}'),
    expected: BAD,
  },
  'a path * with another method than OPTIONS': {
    sent: 'GET * HTTP/1.1\r\nhost: x\r\n\r\n',
    expected: BAD,
  },
  'CONNECT to another host': {
    sent: 'CONNECT example.com:443 HTTP/1.1\r\nhost: x\r\n\r\n',
    expected: { status: 405, code: 'method_not_allowed' },
  },
}

for (const [shape, { sent, expected }] of Object.entries(UNREADABLE)) {
  test(`${shape}: one response in the error format, then the connection ends`, async () => {
    await using connection = new RawConnection(annals.url)
    const response = await connection.send(bytes(sent)).response()
    assertErrorShape(response, expected)
    assert.equal(response.headers.get('connection'), 'close')
    assert.equal(await connection.closed(), '')
  })
}

const NOT_FOUND = { status: 404, code: 'not_found' }
const NOT_ALLOWED = { status: 405, code: 'method_not_allowed' }

/** Well-formed HTTP that is still not a valid request. */
const READABLE: Record<string, { sent: string; expected: { status: number; code: string } }> = {
  'an unknown path': { sent: get('/v2/events'), expected: NOT_FOUND },
  'a path with a slash too many': { sent: get('/health/'), expected: NOT_FOUND },
  'two slashes': { sent: get('//health'), expected: NOT_FOUND },
  'a climb out of the tree': { sent: get('/docs/../../etc/passwd'), expected: NOT_FOUND },
  'an encoded climb': { sent: get('/docs/%2e%2e/%2e%2e/etc/passwd'), expected: NOT_FOUND },
  'an encoded null byte': { sent: get('/%00'), expected: NOT_FOUND },
  'a path of 15 kB': { sent: get(`/${'a'.repeat(15_000)}`), expected: NOT_FOUND },
  'OPTIONS *': { sent: 'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n', expected: NOT_FOUND },
  'percent signs without digits': { sent: get('/v1/%zz'), expected: BAD },
  'percent signs that are no UTF-8': { sent: get('/v1/keys/%ff%fe'), expected: BAD },
  'an unknown parameter': { sent: get('/health?x=1'), expected: BAD },
  'a prototype as parameter': { sent: get('/v1/keys/status?__proto__=1', bearer), expected: BAD },
  'DELETE on a path that only reads': {
    sent: 'DELETE /health HTTP/1.1\r\nhost: x\r\n\r\n',
    expected: NOT_ALLOWED,
  },
  PROPFIND: { sent: 'PROPFIND /v1/events HTTP/1.1\r\nhost: x\r\n\r\n', expected: NOT_ALLOWED },
  TRACE: { sent: 'TRACE /health HTTP/1.1\r\nhost: x\r\n\r\n', expected: NOT_ALLOWED },
  'QUERY without a type': {
    sent: 'QUERY /v1/events HTTP/1.1\r\nhost: x\r\n\r\n',
    expected: NOT_ALLOWED,
  },
  'a wrong method with a body of any type': {
    sent: 'PUT /health HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}',
    expected: NOT_ALLOWED,
  },
  'an unknown path with a body that is no JSON': {
    sent: `POST /nowhere HTTP/1.1\r\nhost: x\r\n${json}content-length: 2\r\n\r\n{{`,
    expected: NOT_FOUND,
  },
  'a body that is not declared as JSON': {
    sent: post('content-type: text/plain\r\ncontent-length: 2\r\n', '{}'),
    expected: { status: 415, code: 'unsupported_media_type' },
  },
  'a body without a type': {
    sent: post('content-length: 2\r\n', '{}'),
    expected: { status: 415, code: 'unsupported_media_type' },
  },
  'a type that is no type': {
    sent: post('content-type: ;;;\r\ncontent-length: 2\r\n', '{}'),
    expected: { status: 415, code: 'unsupported_media_type' },
  },
  'broken JSON': {
    sent: post(`${json}content-length: 9\r\n`, '{"action"'),
    expected: { status: 400, code: 'invalid_json' },
  },
  'bytes that are no UTF-8': {
    sent: post(`${json}content-length: 3\r\n`, '"\xff"'),
    expected: { status: 400, code: 'invalid_json' },
  },
  'no body at all': { sent: post(json), expected: BAD },
  'a length beyond the limit': {
    sent: post(`${json}content-length: 262145\r\n`),
    expected: { status: 413, code: 'payload_too_large' },
  },
  'chunks beyond the limit': {
    sent: post(`${json}transfer-encoding: chunked\r\n`, `40001\r\n${'x'.repeat(262_145)}\r\n`),
    expected: { status: 413, code: 'payload_too_large' },
  },
}

for (const [shape, { sent, expected }] of Object.entries(READABLE)) {
  test(`${shape}: ${expected.status} ${expected.code}`, async () => {
    const response = await sendRaw(annals.url, bytes(sent))
    assertErrorShape(response, expected)
    assert.equal(response.headers.has('allow'), expected.status === 405)
  })
}

test('serves every Host header that RFC 9110 allows', async () => {
  for (const host of [
    '',
    'example.com',
    'a_b.example:8080',
    '[::1]:80',
    '10.0.0.1',
    'a%20b',
    'x:',
  ]) {
    const { status } = await sendRaw(annals.url, `GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
    assert.equal(status, 200, host)
  }
  assert.equal((await sendRaw(annals.url, 'GET /health HTTP/1.0\r\n\r\n')).status, 200)
})

test('a client that disconnects while sending a body is not logged as a database outage', async () => {
  for (const how of ABORTS) {
    logLines.length = 0
    await using connection = new RawConnection(annals.url)
    await connection.send(post(`${json}content-length: 50\r\n`, '{"category":')).abort(how)
    await eventually(() => assert(logLines.some(({ event }) => event?.startsWith('request.'))))
    assert.deepEqual(
      logLines.filter(({ level }) => level > 30),
      [],
    )
  }
})

test('a rejected HEAD request gets a response without a body', async () => {
  await using connection = new RawConnection(annals.url)
  connection.send('HEAD /health HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n')
  const [head, body] = (await connection.closed()).split('\r\n\r\n')
  assert.match(head ?? '', /^HTTP\/1\.1 400 /)
  assert.equal(body, '')
})

test('a wrong method gets the allowed ones', async () => {
  const response = await sendRaw(annals.url, 'PUT /v1/events HTTP/1.1\r\nhost: x\r\n\r\n')
  assert.equal(response.headers.get('allow'), 'GET, HEAD, POST')
})

test('headers that do not end in time get a 408', async () => {
  const response = await sendRaw(impatient.url, 'GET /health HTTP/1.1\r\nhost: x\r\nx: slow')
  assertErrorShape(response, { status: 408, code: 'request_timeout' })
})

test('a body that does not end in time gets one 408', async () => {
  await using connection = new RawConnection(impatient.url)
  connection.send(post(`${json}content-length: 50\r\n`, '{"category":'))
  assertErrorShape(await connection.response(), { status: 408, code: 'request_timeout' })
  assert.equal(await connection.closed(), '')
})

test('an anonymous caller rejected before its body ended gets no second response', async () => {
  await using connection = new RawConnection(impatient.url)
  connection.send('POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{')
  assertErrorShape(await connection.response(), { status: 401, code: 'missing_api_key' })
  assert.equal(await connection.closed(), '')
})

test('rejects a body shorter than its length when the caller disconnects', async () => {
  await using connection = new RawConnection(annals.url)
  connection.send(post(`${json}content-length: 50\r\n`, '{"category":')).finish()
  assertErrorShape(await connection.response(), BAD)
})

test('pipelined requests get responses in order, and the malformed one last', async () => {
  await using connection = new RawConnection(annals.url)
  connection.send(
    `${get('/v1/keys/status', bearer)}${get('/nowhere')}${get('/health')}BREW\r\n\r\n`,
  )
  assert.equal((await connection.response()).status, 200)
  assertErrorShape(await connection.response(), NOT_FOUND)
  assert.equal((await connection.response()).body, '{"ok":true}')
  assertErrorShape(await connection.response(), BAD)
  assert.equal(await connection.closed(), '')
})

test('the rest of a rejected body is never read as the next request', async () => {
  await using connection = new RawConnection(annals.url)
  const smuggled = get('/health')
  connection.send(
    post(`content-type: text/plain\r\ncontent-length: ${smuggled.length}\r\n`, smuggled),
  )
  assertErrorShape(await connection.response(), { status: 415, code: 'unsupported_media_type' })
  connection.send(get('/nowhere'))
  assertErrorShape(await connection.response(), NOT_FOUND)
})

test('a caller that sends far too much still gets the reason', async () => {
  const tooMuch = 'x'.repeat(2 * 1_024 * 1_024)
  for (const [headers, body] of [
    [`content-length: ${tooMuch.length}\r\n`, tooMuch],
    ['transfer-encoding: chunked\r\n', `200000\r\n${tooMuch}\r\n0\r\n\r\n`],
  ] as const) {
    await using connection = new RawConnection(annals.url)
    connection.send(post(`${json}${headers}`, body)).send(get('/health'))
    assertErrorShape(await connection.response(), { status: 413, code: 'payload_too_large' })
    assert.equal((await connection.response()).body, '{"ok":true}', 'the next request is served')
  }
  for (let call = 0; call < 10; call++) {
    const response = await annals.call('POST', '/v1/events', { key: workspaceKey, text: tooMuch })
    assert.equal(response.status, 413)
  }
})

test('a caller that keeps sending after a rejection is disconnected eventually', async () => {
  await using connection = new RawConnection(annals.url)
  assertErrorShape(await connection.send('BREW\r\n\r\n').response(), BAD)
  await eventually(() => {
    connection.send('more\r\n')
    assert(connection.isCut)
  })
})

test('the response has the caller’s trace id, even if the request is rejected', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const header = `traceparent: 00-${traceId}-00f067aa0ba902b7-01\r\n`
  for (const sent of [
    get('/nowhere', header),
    get('/v1/%zz', header),
    post(`${header}expect: x\r\n`),
  ]) {
    const { body, headers } = await sendRaw(annals.url, sent)
    assert.equal(JSON.parse(body).traceId, traceId)
    assert.equal(headers.get('x-trace-id'), traceId)
  }
})

test('the service still responds after all of this', async () => {
  assert.equal((await annals.call('GET', '/health')).json.ok, true)
})
