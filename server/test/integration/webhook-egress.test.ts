import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type Server } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { Agent, request } from 'undici'

import {
  createConnector,
  ConnectError,
  type ConnectorOptions,
} from '../../src/outlet/webhook/send/connector.ts'
import { NameResolver } from '../../src/outlet/webhook/send/name-resolver.ts'
import {
  TLS_ADDRESS_CERTIFICATE,
  TLS_CERTIFICATE,
  TLS_KEY,
} from '../harness/webhook/tls-fixture.ts'

const ANY = { mode: 'any', ports: [] } as const
const CERTIFIED = { cert: TLS_CERTIFICATE, key: TLS_KEY }
/**
 * Resolves every name to this machine, so that the tests never leave it, even if the guard is
 * broken.
 */
const resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }])

/** Responds with the name and the protocol that the client requested in the handshake. */
const respond: RequestListener = ({ socket }, response) => {
  const isTls = socket instanceof TLSSocket
  const handshake = isTls ? { servername: socket.servername, alpn: socket.alpnProtocol } : null
  response.end(JSON.stringify(handshake))
}

/** The server on a free port of this machine, and how many connections it has seen. */
async function listening(server: Server) {
  let connections = 0
  server.on('connection', () => connections++)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return {
    port: address.port,
    seen: () => connections,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Resolves names like the service in its own network. Here only `localhost`. */
const names = new NameResolver({ mode: 'any' })
const resolveLocal = (hostname: string) => names.resolve(hostname)

async function send(url: string, options: Partial<ConnectorOptions> = {}): Promise<unknown> {
  const connect = createConnector({ rules: ANY, resolve: resolveLocal, ...options })
  const agent = new Agent({ connect })
  try {
    const { body } = await request(url, { dispatcher: agent })
    return await body.json()
  } finally {
    await agent.destroy()
  }
}

async function failure(asking: Promise<unknown>): Promise<ConnectError> {
  const error = await asking.then(
    () => null,
    (error: unknown) => error,
  )
  assert(error instanceof ConnectError, String(error))
  return error
}

test('in development, reaches a local receiver over http, by name and by address', async () => {
  await using server = await listening(createHttpServer(respond))
  assert.deepEqual(await send(`http://localhost:${server.port}`), null)
  assert.deepEqual(await send(`http://127.0.0.1:${server.port}`), null)
  assert.deepEqual(await send(`http://receiver.test:${server.port}`, { resolve }), null)
})

test('checks a trusted certificate against the name or the address', async () => {
  await using server = await listening(createHttpsServer(CERTIFIED, respond))
  const ca = TLS_CERTIFICATE
  const byName = await send(`https://localhost:${server.port}`, { ca })
  assert.deepEqual(byName, { servername: 'localhost', alpn: 'http/1.1' })
  const byAddress = await send(`https://127.0.0.1:${server.port}`, { ca })
  assert.deepEqual(byAddress, { servername: false, alpn: 'http/1.1' })
  const other = await failure(send(`https://receiver.test:${server.port}`, { ca, resolve }))
  assert.equal(other.errorClass, 'tls')
  assert.equal(
    other.message,
    'The TLS handshake with receiver.test failed: ERR_TLS_CERT_ALTNAME_INVALID',
  )
})

test('accepts a certificate for an address only for that address', async () => {
  const ca = TLS_ADDRESS_CERTIFICATE
  await using server = await listening(createHttpsServer({ cert: ca, key: TLS_KEY }, respond))
  const byAddress = await send(`https://127.0.0.1:${server.port}`, { ca })
  assert.deepEqual(byAddress, { servername: false, alpn: 'http/1.1' })
  const byName = await failure(send(`https://localhost:${server.port}`, { ca }))
  assert.match(byName.message, /ERR_TLS_CERT_ALTNAME_INVALID/)
})

test('sends the host of the URL as the server name, whatever the Host header says', async () => {
  await using server = await listening(createHttpsServer(CERTIFIED, respond))
  const connect = createConnector({ rules: ANY, resolve: resolveLocal, ca: TLS_CERTIFICATE })
  const agent = new Agent({ connect })
  try {
    const url = `https://localhost:${server.port}`
    const headers = { host: 'elsewhere.test' }
    const { body } = await request(url, { dispatcher: agent, headers })
    assert.deepEqual(await body.json(), { servername: 'localhost', alpn: 'http/1.1' })
  } finally {
    await agent.destroy()
  }
})

test('rejects a self-signed certificate, even if the environment disables checks', async (t) => {
  await using server = await listening(createHttpsServer(CERTIFIED, respond))
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED
  t.after(() => {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before
  })
  for (const setting of ['1', '0']) {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = setting
    const error = await failure(send(`https://localhost:${server.port}`))
    assert.equal(error.errorClass, 'tls')
    assert.equal(
      error.message,
      'The TLS handshake with localhost failed: DEPTH_ZERO_SELF_SIGNED_CERT',
    )
    assert(error.cause instanceof Error)
  }
})

test('classifies a receiver without TLS, or one that disconnects, as a TLS failure', async () => {
  await using plain = await listening(createHttpServer(respond))
  await using rude = await listening(
    createServer((socket) => socket.once('data', () => socket.destroy())),
  )
  for (const { port } of [plain, rude]) {
    const error = await failure(send(`https://localhost:${port}`))
    assert.equal(error.errorClass, 'tls')
  }
})

test('gives up a receiver that is silent in the handshake after the timeout', async () => {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  await using server = await listening(
    createServer((socket) =>
      socket
        .resume()
        .on('error', () => {})
        .on('close', () => leave()),
    ),
  )
  const error = await failure(send(`https://127.0.0.1:${server.port}`, { connectTimeoutMs: 50 }))
  assert.equal(error.errorClass, 'timeout')
  assert.equal(error.message, '127.0.0.1 did not respond in time')
  await left
})

test('reports a port without a listener as a failed connection', async () => {
  const server = await listening(createServer())
  await server[Symbol.asyncDispose]()
  const error = await failure(send(`http://127.0.0.1:${server.port}`))
  assert.equal(error.errorClass, 'connect')
  assert.equal(error.message, 'The connection to 127.0.0.1 failed: ECONNREFUSED')
})

test('connects to the second address if the first does not respond', async () => {
  await using server = await listening(createHttpServer(respond))
  const resolve = () =>
    Promise.resolve([
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ])
  assert.deepEqual(await send(`http://receiver.test:${server.port}`, { resolve }), null)
})

test('in public mode, never connects to this machine, by any name or notation', async () => {
  await using server = await listening(createHttpsServer(CERTIFIED, respond))
  const rules = { mode: 'public', ports: [server.port] } as const
  for (const host of [
    'receiver.example.com',
    'localhost',
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
  ]) {
    const options = { rules, resolve, ca: TLS_CERTIFICATE }
    const error = await failure(send(`https://${host}:${server.port}`, options))
    assert.equal(error.errorClass, 'blocked_address', host)
  }
  assert.equal(server.seen(), 0)
})

test('in public mode, sends no request on a connection that ends on this machine', async () => {
  let requests = 0
  await using server = await listening(createHttpsServer(CERTIFIED, () => requests++))
  const rules = { mode: 'public', ports: [] } as const
  const target = { host: '127.0.0.1', port: server.port }
  for (const dial of [
    () => connect(target),
    () => connectTls({ ...target, servername: 'localhost', ca: TLS_CERTIFICATE }),
  ]) {
    const error = await failure(send('https://8.8.8.8', { rules, dial }))
    assert.equal(error.errorClass, 'blocked_address')
    assert.equal(error.message, '8.8.8.8 connected to an address that is not public')
  }
  assert.equal(requests, 0)
})

test('a connection serves several requests', async () => {
  await using server = await listening(createHttpServer(respond))
  const agent = new Agent({ connect: createConnector({ rules: ANY, resolve }), connections: 1 })
  try {
    for (const _request of [1, 2, 3]) {
      const { body } = await request(`http://127.0.0.1:${server.port}`, { dispatcher: agent })
      await body.json()
    }
    assert.equal(server.seen(), 1)
  } finally {
    await agent.destroy()
  }
})
