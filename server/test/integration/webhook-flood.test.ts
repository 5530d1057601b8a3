import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import tls, { TLSSocket } from 'node:tls'
import type { SendResult } from '../../src/outlet/webhook/send/sender.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  flood,
  type Misbehavior,
  raw,
  type ReceiverOptions,
  type Reply,
  startReceiver,
} from '../harness/webhook/receiver.ts'
import { dialLoopback, sending, startSender } from '../harness/webhook/sender.ts'
import { TLS_CERTIFICATE, TLS_KEY } from '../harness/webhook/tls-fixture.ts'

const KIB = 1_024
/** The response limit, plus one socket read. */
const BYTES_READ_MAX = 192 * KIB
/** If only the deadline ends a flood, the test fails because of the bytes read until then. */
const TIMEOUT_MS = 30_000

const LIMITS = { timeoutMs: TIMEOUT_MS, bodyGraceMs: TIMEOUT_MS, connectionIdleMs: TIMEOUT_MS }

const TOO_LARGE = /^The receiver sent more than 128 KiB\.$/
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

/** Floods before a final status line. */
const BEFORE_STATUS: Record<string, { reply: Reply; says: RegExp }> = {
  'short informational responses': {
    reply: flood('', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    says: /^The receiver sent more than 10 informational responses\.$/,
  },
  'long informational responses': {
    reply: flood('', `HTTP/1.1 102 Processing\r\nx: ${'y'.repeat(15 * KIB)}\r\n\r\n`),
    says: TOO_LARGE,
  },
  'empty lines before the status line': {
    reply: flood('', '\r\n'),
    says: TOO_LARGE,
  },
  'a reason phrase without end': {
    reply: flood('HTTP/1.1 200 ', 'OK '),
    says: TOO_LARGE,
  },
  'blanks before a header value': {
    reply: flood('HTTP/1.1 200 OK\r\nx:', ' '),
    says: TOO_LARGE,
  },
  headers: {
    reply: flood('HTTP/1.1 200 OK\r\n', 'x: y\r\n'),
    says: TOO_LARGE,
  },
}

/** Floods after the status line of a 200. */
const AFTER_STATUS: Record<string, Reply> = {
  'chunk extensions': flood(CHUNKED, `1;${'a'.repeat(65_000)}\r\nx\r\n`),
  'a chunk extension without end': flood(`${CHUNKED}1;`, 'a'),
  'a chunk size without end': flood(CHUNKED, '0'),
  'tiny chunks': flood(CHUNKED, '1\r\nx\r\n'),
  trailers: flood(`${CHUNKED}0\r\n`, 'x: y\r\n'),
  'blanks in a trailer': flood(`${CHUNKED}0\r\nx:`, ' '),
  'a body without end': flood('HTTP/1.1 200 OK\r\n\r\n', 'x'),
  'empty lines after the response': flood('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', '\r\n'),
}

const TLS = { key: TLS_KEY, cert: TLS_CERTIFICATE }
const SCHEMES = { http: {}, https: { tls: TLS } }

for (const [scheme, options] of Object.entries(SCHEMES)) {
  for (const [name, { reply, says }] of Object.entries(BEFORE_STATUS)) {
    test(`a flood of ${name} over ${scheme} fails the attempt after a few bytes`, async () => {
      const { outcome } = await sendOnce(reply, options)
      assert(outcome.kind === 'unreachable', JSON.stringify(outcome))
      assert.equal(outcome.errorClass, 'reset')
      assert.match(outcome.message, says)
    })
  }

  for (const [name, reply] of Object.entries(AFTER_STATUS)) {
    test(`a flood of ${name} over ${scheme} is cut after a few bytes, and the 200 counts`, async () => {
      const { outcome } = await sendOnce(reply, options)
      assert(outcome.kind === 'accepted', JSON.stringify(outcome))
      assert.equal(outcome.responseStatus, 200)
    })
  }

  test(`bytes of earlier requests on a connection over ${scheme} don't count`, async () => {
    await using receiver = await startReceiver({ body: 'x'.repeat(100 * KIB) }, options)
    const connect = dialLoopback({ ca: TLS_CERTIFICATE })
    const { sender, sockets } = startSender({ ...LIMITS, connect, connectionsPerOriginMax: 1 })
    await using _ = sender
    for (let count = 0; count < 5; count += 1) {
      assert.equal((await sender.send(sending(receiver.url))).outcome.kind, 'accepted')
    }
    assert.equal(sockets.length, 1)
  })
}

test('ten informational responses may precede the response', async () => {
  const informational = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(10)
  const reply = raw(`${informational}HTTP/1.1 204 X\r\nconnection: close\r\n\r\n`)
  const { outcome } = await sendOnce(reply)
  assert.equal(outcome.kind, 'accepted')
})

test('a response head in very many pieces fails the attempt', async () => {
  const { outcome } = await sendOnce(inPieces('HTTP/1.1 200 OK\r\nx: ', 'y'))
  assert(outcome.kind === 'unreachable', JSON.stringify(outcome))
  assert.equal(outcome.message, 'The receiver sent its response in more than 1000 pieces.')
})

test('bytes that TLS adds count', async () => {
  // Each piece is a TLS record, which adds 22 bytes.
  const reply = inPieces('HTTP/1.1 200 OK\r\nx: ', 'y'.repeat(200))
  await using receiver = await startReceiver(reply, { tls: TLS })
  const connect = dialLoopback({ ca: TLS_CERTIFICATE })
  const { sender, sockets } = startSender({ ...LIMITS, connect })
  await using _ = sender
  const { outcome } = await sender.send(sending(receiver.url))
  assert(outcome.kind === 'unreachable', JSON.stringify(outcome))
  assert.match(outcome.message, TOO_LARGE)
  const bytesRead = sockets[0]?.bytesRead ?? Infinity
  assert(bytesRead < 125 * KIB, `${bytesRead} decrypted bytes were read`)
})

test('endless TLS handshakes fail the attempt', async (t) => {
  const { CLIENT_RENEG_LIMIT } = tls
  t.after(() => Object.assign(tls, { CLIENT_RENEG_LIMIT }))
  Object.assign(tls, { CLIENT_RENEG_LIMIT: Infinity })
  const reply: Misbehavior = {
    misbehave: async (socket) => {
      assert(socket instanceof TLSSocket)
      const renegotiate = () => socket.renegotiate({}, (error) => error ?? renegotiate())
      renegotiate()
      await once(socket, 'close')
    },
  }
  const { outcome } = await sendOnce(reply, { tls: { ...TLS, maxVersion: 'TLSv1.2' } })
  assert(outcome.kind === 'unreachable', JSON.stringify(outcome))
  assert.match(outcome.message, TOO_LARGE)
})

/** Sends the first text, then the piece repeatedly, so that each is read separately. */
const inPieces = (first: string, piece: string): Misbehavior => ({
  misbehave: async (socket) => {
    socket.write(first)
    while (!socket.destroyed) {
      await new Promise((resolve) => socket.write(piece, resolve))
      await new Promise(setImmediate)
    }
  },
})

/** One send, and the number of bytes read until the sender closed the connection. */
async function sendOnce(reply: Reply, options: ReceiverOptions = {}): Promise<SendResult> {
  await using receiver = await startReceiver(reply, options)
  const { sender, sockets } = startSender({
    ...LIMITS,
    connect: dialLoopback({ ca: TLS_CERTIFICATE }),
  })
  await using _ = sender
  const sent = await sender.send(sending(receiver.url))
  await eventually(() => assert.equal(receiver.openConnectionCount, 0))
  const bytesRead = sockets[0]?.bytesRead ?? Infinity
  assert(bytesRead <= BYTES_READ_MAX, `${bytesRead} bytes were read`)
  return sent
}
