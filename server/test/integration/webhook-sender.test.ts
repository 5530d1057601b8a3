import assert from 'node:assert/strict'
import { connect as connectTcp } from 'node:net'
import { test } from 'node:test'
import { buildConnector } from 'undici'
import type { AttemptOutcome, ErrorClass } from '../../src/outlet/webhook/delivery/delivery.ts'
import type { SenderOptions } from '../../src/outlet/webhook/send/sender.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  drip,
  endless,
  hang,
  hangUpInBody,
  large,
  longerThanSent,
  malformed,
  raw,
  sendRawThenClose,
  redirectTo,
  type Reply,
  reset,
  type Script,
  shorterThanSent,
  startReceiver,
} from '../harness/webhook/receiver.ts'
import {
  dialLoopback,
  sending,
  startSender as startLoopbackSender,
} from '../harness/webhook/sender.ts'
import { TLS_CERTIFICATE, TLS_KEY } from '../harness/webhook/tls-fixture.ts'

const KIB = 1_024
/** Longer than a busy machine pauses. */
const PATIENT_MS = 60_000
/** For receivers that never respond, short enough to wait for. */
const TIMEOUT_MS = 1_500
const IMPATIENT = { timeoutMs: TIMEOUT_MS, bodyGraceMs: 500 }
/** What a slow machine may add to a timer. */
const SLACK_MS = 30_000
const NOW_MS = Date.parse('2026-03-01T12:00:00Z')

const startSender = (options: Partial<SenderOptions> = {}) =>
  startLoopbackSender({
    timeoutMs: PATIENT_MS,
    bodyGraceMs: PATIENT_MS,
    connectionIdleMs: PATIENT_MS,
    clock: manualClock(NOW_MS).clock,
    ...options,
  })

/** Every name resolves to this port. */
function connectTo(port: number): SenderOptions['connect'] {
  return (_, callback) => {
    const socket = connectTcp(port, '127.0.0.1', () => callback(null, socket))
  }
}

/** One send to a receiver with this script. */
async function outcomeWith(
  script: Script,
  options?: Partial<SenderOptions>,
): Promise<{ outcome: AttemptOutcome; durationMs: number; requests: number }> {
  await using receiver = await startReceiver(script)
  await using sender = startSender(options).sender
  const sent = await sender.send(sending(receiver.url))
  return { ...sent, requests: receiver.requestCount }
}

function assertUnreachable(outcome: AttemptOutcome, errorClass: ErrorClass, says: RegExp): void {
  assert(outcome.kind === 'unreachable', JSON.stringify(outcome))
  assert.equal(outcome.errorClass, errorClass)
  assert.match(outcome.message, says)
  assert.match(outcome.message, /^[^\n]{1,200}$/)
}

test('the receiver gets a POST with our headers, the path with its query, and the body', async () => {
  await using receiver = await startReceiver()
  await using sender = startSender().sender
  await sender.send(sending(`${receiver.url}/a%20b?c=d&e#f`, { 'x-service-attempt': '1' }))
  assert(!process.getActiveResourcesInfo().includes('Timeout'), 'no timer outlives its send')

  const [request] = receiver.requests
  assert(request)
  assert.equal(request.method, 'POST')
  assert.equal(request.path, '/hook/a%20b?c=d&e')
  assert.equal(request.body.toString(), '{"id":"é"}')
  assert.deepEqual(request.headers, {
    host: new URL(receiver.url).host,
    connection: 'keep-alive',
    'content-type': 'application/json',
    'x-service-attempt': '1',
    'content-length': '11',
  })
})

const RESPONSES: Record<string, { response: Reply; outcome: AttemptOutcome }> = {
  'a 200 with a body': {
    response: { body: 'thanks' },
    outcome: { kind: 'accepted', responseStatus: 200, excerpt: 'thanks' },
  },
  'a 204 without a body': {
    response: { status: 204 },
    outcome: { kind: 'accepted', responseStatus: 204, excerpt: '' },
  },
  'a 200 in chunks': {
    response: { isChunked: true, body: 'piece by piece' },
    outcome: { kind: 'accepted', responseStatus: 200, excerpt: 'piece by piece' },
  },
  'a body that the end of the connection ends': {
    response: sendRawThenClose('HTTP/1.1 200 OK\r\n\r\nto the end'),
    outcome: { kind: 'accepted', responseStatus: 200, excerpt: 'to the end' },
  },
  'an HTTP/1.0 response': {
    response: sendRawThenClose('HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold'),
    outcome: { kind: 'accepted', responseStatus: 200, excerpt: 'old' },
  },
  'a response after informational ones': {
    response: raw(
      'HTTP/1.1 103 X\r\n\r\nHTTP/1.1 102 X\r\n\r\nHTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n',
    ),
    outcome: { kind: 'accepted', responseStatus: 202, excerpt: '' },
  },
  'a slow response within the timeout': {
    response: { afterMs: 50, body: 'late' },
    outcome: { kind: 'accepted', responseStatus: 200, excerpt: 'late' },
  },
  'a redirect': {
    response: redirectTo('http://127.0.0.1:1/elsewhere'),
    outcome: { ...refused(302, null, 'ok'), errorClass: 'redirect' },
  },
  'a 410': { response: { status: 410, body: 'gone' }, outcome: refused(410, null, 'gone') },
  'a 503 with Retry-After in seconds': {
    response: { status: 503, headers: { 'retry-after': '120' }, body: '' },
    outcome: refused(503, 120_000),
  },
  'a 503 with Retry-After as a date': {
    response: {
      status: 503,
      headers: { 'retry-after': 'Sun, 01 Mar 2026 12:05:00 GMT' },
      body: '',
    },
    outcome: refused(503, 300_000),
  },
  'an unknown status': { response: { status: 799 }, outcome: refused(799, null, 'ok') },
}

type Refused = Extract<AttemptOutcome, { kind: 'refused' }>

function refused(responseStatus: number, retryAfterMs: number | null, excerpt = ''): Refused {
  return { kind: 'refused', responseStatus, errorClass: 'http', retryAfterMs, excerpt }
}

for (const [name, { response, outcome: expected }] of Object.entries(RESPONSES)) {
  test(`${name}: ${expected.kind}, by its status line alone`, async () => {
    const { outcome, requests } = await outcomeWith(response)
    assert.deepEqual(outcome, expected)
    assert.equal(requests, 1)
  })
}

const tls = { key: TLS_KEY, cert: TLS_CERTIFICATE }

test('sends to an https receiver over TLS, and reuses the connection', async () => {
  await using receiver = await startReceiver({}, { tls })
  const connect = dialLoopback({ ca: TLS_CERTIFICATE })
  await using sender = startSender({ connect, connectionsPerOriginMax: 1 }).sender
  for (let count = 0; count < 3; count += 1) {
    assert.equal((await sender.send(sending(receiver.url))).outcome.kind, 'accepted')
  }
  assert.equal(receiver.connectionCount, 1)
})

type BrokenBody = { reply: Reply; excerpt: RegExp; options?: Partial<SenderOptions> }
const BROKEN_BODIES: Record<string, BrokenBody> = {
  'a hang-up in mid-body': { reply: hangUpInBody(), excerpt: /^half$/ },
  'a body shorter than its length': { reply: longerThanSent, excerpt: /^short$/ },
  'a body longer than its length': { reply: shorterThanSent, excerpt: /^ok$/ },
  'a broken chunk': {
    reply: raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokZZ\r\n'),
    excerpt: /^ok$/,
  },
  'a head and then nothing': {
    reply: raw('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n'),
    excerpt: /^$/,
    options: IMPATIENT,
  },
  'a body that drips': { reply: drip({ everyMs: 20 }), excerpt: /^x+$/, options: IMPATIENT },
  'a body without end': { reply: endless(), excerpt: /^x{16384}$/ },
}

for (const [name, { reply, excerpt, options }] of Object.entries(BROKEN_BODIES)) {
  test(`${name} does not undo a 200`, async () => {
    const { outcome, durationMs } = await outcomeWith(reply, options)
    assert(outcome.kind === 'accepted', JSON.stringify(outcome))
    assert.equal(outcome.responseStatus, 200)
    assert.match(outcome.excerpt, excerpt)
    assert(durationMs < TIMEOUT_MS + SLACK_MS)
  })
}

test('the deadline applies to a body that drips, even if the grace period is longer', async () => {
  const { outcome, durationMs } = await outcomeWith(drip({ everyMs: 20 }), {
    timeoutMs: TIMEOUT_MS,
  })
  assert.equal(outcome.kind, 'accepted')
  assert(durationMs >= TIMEOUT_MS - 5 && durationMs < TIMEOUT_MS + SLACK_MS, `${durationMs} ms`)
})

test('a broken body does not hide a rejection', async () => {
  const { outcome } = await outcomeWith(hangUpInBody(500))
  assert.deepEqual(outcome, refused(500, null, 'half'))
})

const NO_RESPONSE: Record<string, { reply: Reply; errorClass: ErrorClass; says: RegExp }> = {
  'a receiver that hangs': {
    reply: hang,
    errorClass: 'timeout',
    says: /no response within 1.5 sec/,
  },
  'a head that drips': {
    reply: drip({ everyMs: 20, before: 'HTTP/1.1 200 OK\r\nx-endless: ' }),
    errorClass: 'timeout',
    says: /no response within/,
  },
  'an informational response and no other': {
    reply: raw('HTTP/1.1 103 X\r\n\r\n'),
    errorClass: 'timeout',
    says: /no response within/,
  },
  'a connection reset': { reply: reset, errorClass: 'reset', says: /closed the connection/ },
  'a hang-up in the head': {
    reply: sendRawThenClose('HTTP/1.1 200 OK\r\ncontent-le'),
    errorClass: 'reset',
    says: /closed the connection/,
  },
  'malformed HTTP': { reply: malformed, errorClass: 'reset', says: /not HTTP\/1\.1/ },
  'another protocol': { reply: raw('220 mail ESMTP\r\n'), errorClass: 'reset', says: /not HTTP/ },
  'an unexpected 100': {
    reply: raw('HTTP/1.1 100 X\r\n\r\nHTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n'),
    errorClass: 'reset',
    says: /unexpected response/,
  },
  'a change of protocol': {
    reply: raw('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n'),
    errorClass: 'reset',
    says: /unexpected response/,
  },
}

for (const [name, { reply, errorClass, says }] of Object.entries(NO_RESPONSE)) {
  test(`${name}: unreachable, class ${errorClass}`, async () => {
    const options = errorClass === 'timeout' ? IMPATIENT : {}
    const { outcome, durationMs, requests } = await outcomeWith(reply, options)
    assertUnreachable(outcome, errorClass, says)
    if (errorClass === 'timeout') assert(durationMs >= TIMEOUT_MS - 5, `after ${durationMs} ms`)
    assert(durationMs < TIMEOUT_MS + SLACK_MS, `after ${durationMs} ms`)
    assert.equal(requests, 1, 'nothing is sent twice')
  })
}

test('reads only the excerpt of a 100 MB response, and closes the connection', async () => {
  await using receiver = await startReceiver(large(100 * KIB * KIB))
  const { sender, sockets } = startSender()
  await using _ = sender
  const { outcome } = await sender.send(sending(receiver.url))
  assert(outcome.kind === 'accepted')
  assert.equal(outcome.excerpt.length, 16 * KIB)
  await eventually(() => assert.equal(receiver.openConnectionCount, 0))
  const bytesRead = sockets[0]?.bytesRead ?? Infinity
  assert(bytesRead <= 192 * KIB, `${bytesRead} bytes were read`)
})

test('a response larger than the excerpt, but not too large, keeps the connection usable', async () => {
  await using receiver = await startReceiver({ body: 'y'.repeat(40 * KIB) })
  const { sender, sockets } = startSender()
  await using _ = sender
  const first = await sender.send(sending(receiver.url))
  assert(first.outcome.kind === 'accepted')
  assert.equal(first.outcome.excerpt, 'y'.repeat(16 * KIB))
  await eventually(() => assert((sockets[0]?.bytesRead ?? 0) > 40 * KIB))
  for (let count = 0; count < 5; count += 1) await sender.send(sending(receiver.url))
  assert(receiver.connectionCount <= 2, `${receiver.connectionCount} connections`)
})

test('an excerpt is text that PostgreSQL can store, within its limit and without half a character', async () => {
  const excerptOf = async (body: Buffer) => {
    const { outcome } = await outcomeWith({ body }, { excerptBytesMax: 10 })
    assert(outcome.kind === 'accepted')
    return outcome.excerpt
  }
  assert.equal(await excerptOf(Buffer.from('a\0b')), 'a\uFFFDb')
  assert.equal(await excerptOf(Buffer.from([0x61, 0xff, 0x62])), 'a\uFFFDb')
  assert.equal(await excerptOf(Buffer.from([0x61, 0xe2, 0x82])), 'a\uFFFD')
  assert.equal(await excerptOf(Buffer.from('1234567€€')), '1234567€')
  assert.equal(await excerptOf(Buffer.from('12345678€')), '12345678')
  assert.equal(await excerptOf(Buffer.alloc(10)), '\uFFFD'.repeat(3))
})

test('a connection is reused, by one send at a time', async () => {
  await using receiver = await startReceiver()
  await using sender = startSender().sender
  for (let count = 0; count < 20; count += 1) await sender.send(sending(receiver.url))
  // The finished connection is free one turn of the event loop after its send.
  assert(receiver.connectionCount <= 2, `${receiver.connectionCount} connections`)

  receiver.respondWith({ afterMs: 50 })
  await Promise.all(Array.from({ length: 5 }, () => sender.send(sending(receiver.url))))
  const busy = receiver.requests.slice(-5).map(({ connection }) => connection)
  assert.equal(new Set(busy).size, 5)
})

test('a connection that the receiver has closed is replaced', async () => {
  await using receiver = await startReceiver()
  const { sender, sockets } = startSender()
  await using _ = sender
  await sender.send(sending(receiver.url))
  receiver.cutAll()
  await eventually(() => assert(sockets[0]?.destroyed))
  const { outcome } = await sender.send(sending(receiver.url))
  assert.equal(outcome.kind, 'accepted')
})

test('reports a reset, and sends once, if the receiver closes a reused connection during a write', async () => {
  await using receiver = await startReceiver(() => (receiver.requestCount === 1 ? {} : reset))
  const { sender, sockets } = startSender({ connectionsPerOriginMax: 1 })
  await using _ = sender
  await sender.send(sending(receiver.url))
  const { outcome } = await sender.send(sending(receiver.url))
  assertUnreachable(outcome, 'reset', /closed the connection/)
  assert.equal(sockets.length, 1)
  assert.equal(receiver.requestCount, 2)
})

test('closes an idle connection soon, whatever the receiver offers', async () => {
  await using receiver = await startReceiver({ headers: { 'keep-alive': 'timeout=600' } })
  await using sender = startSender({ connectionIdleMs: 50 }).sender
  await sender.send(sending(receiver.url))
  await eventually(() => assert.equal(receiver.openConnectionCount, 0), { timeoutMs: SLACK_MS })
  await eventually(() => assert.equal(sender.originCount, 0))
})

test('limits the connections per origin, and queues the others', async () => {
  await using receiver = await startReceiver({ afterMs: 20 })
  await using sender = startSender({ connectionsPerOriginMax: 3 }).sender
  const sends = Array.from({ length: 12 }, () => sender.send(sending(receiver.url)))
  const outcomes = await Promise.all(sends)
  assert(outcomes.every(({ outcome }) => outcome.kind === 'accepted'))
  assert.equal(receiver.connectionCount, 3)
})

test('a request that gave up waiting for a connection is never written', async () => {
  await using receiver = await startReceiver()
  const opening = Promise.withResolvers<void>()
  const dial = dialLoopback()
  const connect: SenderOptions['connect'] = (target, callback) => {
    void opening.promise.then(() => dial(target, callback))
  }
  await using sender = startSender({
    connect,
    connectionsPerOriginMax: 1,
    timeoutMs: TIMEOUT_MS,
  }).sender
  const late = await sender.send(sending(receiver.url))
  assertUnreachable(late.outcome, 'timeout', /no connection within/)

  opening.resolve()
  const next = await sender.send(sending(receiver.url))
  assert.equal(next.outcome.kind, 'accepted')
  assert.equal(receiver.requestCount, 1)
})

test('gives up a connector that never calls back at the deadline', async () => {
  await using sender = startSender({ connect: () => {}, timeoutMs: TIMEOUT_MS }).sender
  const { outcome } = await sender.send(sending('http://127.0.0.1:1/'))
  assertUnreachable(outcome, 'timeout', /no connection within/)
})

test('reports a port without a listener as unreachable, class connect', async () => {
  let url = ''
  {
    await using receiver = await startReceiver()
    url = receiver.url
  }
  await using sender = startSender({ connect: buildConnector({ allowH2: false }) }).sender
  for (let count = 0; count < 3; count += 1) {
    const { outcome } = await sender.send(sending(url))
    assertUnreachable(outcome, 'connect', /No connection could be opened/)
  }
})

for (const errorClass of ['dns', 'connect', 'tls', 'timeout', 'blocked_address'] as const) {
  test(`keeps the class and message of a ${errorClass} failure of the connector`, async () => {
    const message = `what ${errorClass} means`
    const fault = Object.assign(new Error(`what ${errorClass}\n  means`), { errorClass })
    for (const error of [fault, new Error('outer', { cause: fault })]) {
      await using sender = startSender({ connect: (_, callback) => callback(error, null) }).sender
      const { outcome } = await sender.send(sending('http://receiver.test/'))
      assert.deepEqual(outcome, { kind: 'unreachable', errorClass, message })
    }
  })
}

test('reports a TLS alert and lost packets on an open connection as such', async () => {
  await using receiver = await startReceiver(hang)
  const port = Number(new URL(receiver.url).port)
  const faults = [
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls'],
    ['ETIMEDOUT', 'timeout'],
  ] as const
  for (const [code, errorClass] of faults) {
    const { sender, sockets } = startSender({ connect: connectTo(port) })
    await using _ = sender
    const sent = sender.send(sending('http://receiver.test/'))
    await receiver.waitFor(errorClass === 'tls' ? 1 : 2)
    sockets[0]?.destroy(Object.assign(new Error('broken'), { code }))
    assertUnreachable((await sent).outcome, errorClass, /^The /)
  }
})

test('a request that cannot be sent returns an outcome, and does not block its origin', async () => {
  await using receiver = await startReceiver()
  await using sender = startSender({ connectionsPerOriginMax: 2 }).sender
  for (const url of ['', 'nowhere', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'http://']) {
    assertUnreachable((await sender.send(sending(url))).outcome, 'connect', /URL is not valid/)
  }
  const badHeaders = [
    { 'x-bad': 'a\r\nb: c' },
    { 'x-bad': 'snow ☃' },
    { 'x bad': 'a' },
    { '': 'a' },
    { Host: 'elsewhere.test' },
    { 'Content-Length': '3' },
    { 'transfer-encoding': 'chunked' },
    { ['x'.repeat(1_000) + '\n']: 'a' },
  ]
  for (const headers of badHeaders) {
    const { outcome } = await sender.send(sending(receiver.url, headers))
    assertUnreachable(outcome, 'connect', /^The header /)
  }
  assert.equal((await sender.send(sending(receiver.url))).outcome.kind, 'accepted')
  assert.equal(receiver.requestCount, 1)
})

test('forgets an origin that timed out, and closes its connection', async () => {
  await using receiver = await startReceiver(hang)
  const { sender, sockets } = startSender(IMPATIENT)
  await using _ = sender
  await sender.send(sending(receiver.url))
  await eventually(() => assert.equal(receiver.openConnectionCount, 0))
  assert(sockets[0]?.destroyed)
  await eventually(() => assert.equal(sender.originCount, 0))
})

test('beyond the limit of origins, closes the connection that was unused the longest', async () => {
  await using receiver = await startReceiver()
  const port = Number(new URL(receiver.url).port)
  const { sender, sockets } = startSender({ connect: connectTo(port), originsMax: 3 })
  await using _ = sender
  const sendTo = (name: string) => sender.send(sending(`http://${name}.test/`))
  for (const name of ['a', 'b', 'c', 'a', 'd']) {
    assert.equal((await sendTo(name)).outcome.kind, 'accepted')
  }
  await eventually(() => assert.equal(receiver.openConnectionCount, 3))
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [false, true, false, false],
  )
  assert.equal(sender.originCount, 3)
})

test('stopping ends every send immediately, and none starts afterwards', async () => {
  await using receiver = await startReceiver(hang)
  const { sender } = startSender({ connectionsPerOriginMax: 2 })
  const sends = Array.from({ length: 5 }, () => sender.send(sending(receiver.url)))
  await receiver.waitFor(2)
  const stoppedAtMs = performance.now()
  await sender[Symbol.asyncDispose]()
  for (const { outcome } of await Promise.all(sends)) {
    assertUnreachable(outcome, 'reset', /The service stopped/)
  }
  assert(performance.now() - stoppedAtMs < SLACK_MS)
  await eventually(() => assert.equal(receiver.openConnectionCount, 0))
  assertUnreachable(
    (await sender.send(sending(receiver.url))).outcome,
    'reset',
    /The service stopped/,
  )
  assert.equal(receiver.requestCount, 2)
})

test('a send whose response has started keeps its outcome when we stop', async () => {
  await using receiver = await startReceiver(drip({ everyMs: 10 }))
  const { sender, sockets } = startSender()
  const sent = sender.send(sending(receiver.url))
  await eventually(() => assert((sockets[0]?.bytesRead ?? 0) > 60))
  await sender[Symbol.asyncDispose]()
  assert.equal((await sent).outcome.kind, 'accepted')
})
