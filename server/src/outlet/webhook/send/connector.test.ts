import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { mock, test } from 'node:test'
import fc from 'fast-check'
import type { DestinationRules } from './destination.ts'
import {
  CONNECT_TIMEOUT_MS,
  createConnector,
  ConnectError,
  type ConnectTarget,
} from './connector.ts'

const PUBLIC: DestinationRules = { mode: 'public', ports: [] }
const ANY: DestinationRules = { mode: 'any', ports: [] }

/** Simulates what the network does to a socket. The sockets are never really connected. */
type Network = (socket: Socket, target: ConnectTarget) => void

const accept: Network = (socket, { address, tls }) => {
  simulateConnect(socket, address)
  if (tls) socket.emit('secureConnect')
}
const refuse: Network = (socket) =>
  socket.destroy(Object.assign(new Error('connect 192.0.2.1:443'), { code: 'ECONNREFUSED' }))
const silence: Network = () => {}

/** Simulates an established TCP connection with this peer. */
function simulateConnect(socket: Socket, peer: string | undefined): void {
  Object.defineProperty(socket, 'remoteAddress', { value: peer })
  socket.emit('connect')
}

/** A connector on a simulated network. Each lookup returns the next answers, and the last ones repeat. */
function connector({
  rules = PUBLIC,
  answers = [['8.8.8.8']],
  network = accept,
  resolve,
}: {
  rules?: DestinationRules
  answers?: string[][]
  network?: Network
  resolve?: () => Promise<never>
}) {
  const connected: ConnectTarget[] = []
  const sockets: Socket[] = []
  const looked: string[] = []
  const connect = createConnector({
    rules,
    resolve: (hostname) => {
      looked.push(hostname)
      const addresses = (answers.length > 1 ? answers.shift() : answers[0]) ?? []
      return resolve?.() ?? Promise.resolve(addresses.map((address) => ({ address, family: 0 })))
    },
    dial: (target) => {
      const socket = new Socket()
      connected.push(target)
      sockets.push(socket)
      setImmediate(() => network(socket, target))
      return socket
    },
  })
  const open = (origin: string): Promise<Socket> => {
    const { protocol, hostname, port } = new URL(origin)
    const { promise, resolve, reject } = Promise.withResolvers<Socket>()
    connect({ protocol, hostname: hostname.replace(/[[\]]/g, ''), port }, (error, socket) =>
      error ? reject(error) : resolve(socket),
    )
    return promise
  }
  return {
    open,
    connected,
    sockets,
    looked,
    addresses: () => connected.map(({ address }) => address),
  }
}

async function failure(opening: Promise<Socket>): Promise<ConnectError> {
  const error = await opening.then(
    () => null,
    (error: unknown) => error,
  )
  assert(error instanceof ConnectError, String(error))
  return error
}

test('resolves a name once and connects to the checked address under that name', async () => {
  const { open, connected, sockets, looked } = connector({})
  assert.equal(await open('https://example.com'), sockets[0])
  const tls = { servername: 'example.com', ca: undefined }
  assert.deepEqual(connected, [{ address: '8.8.8.8', port: 443, tls }])
  assert.deepEqual(looked, ['example.com'])
})

test('keeps the trailing dot of a name for the lookup and drops it for TLS', async () => {
  const { open, connected, looked } = connector({})
  await open('https://example.com.')
  assert.deepEqual(looked, ['example.com.'])
  assert.equal(connected[0]?.tls?.servername, 'example.com')
})

test('connects to an address in the URL without a lookup and without a server name', async () => {
  const { open, connected, looked } = connector({})
  await open('https://[2606:4700::1111]')
  await open('https://8.8.8.8')
  assert.deepEqual(looked, [])
  assert.deepEqual(
    connected.map(({ address, tls }) => [address, tls?.servername]),
    [
      ['2606:4700::1111', null],
      ['8.8.8.8', null],
    ],
  )
})

test('rejects a name that is rebound to a private address at the next connection', async () => {
  const { open, addresses } = connector({ answers: [['8.8.8.8'], ['127.0.0.1']] })
  await open('https://rebind.example.com')
  const error = await failure(open('https://rebind.example.com'))
  assert.equal(error.errorClass, 'blocked_address')
  assert.deepEqual(addresses(), ['8.8.8.8'])
})

for (const answers of [
  ['10.0.0.1'],
  ['8.8.8.8', '10.0.0.1'],
  ['10.0.0.1', '8.8.8.8'],
  ['8.8.8.8', '1.1.1.1', '9.9.9.9', '8.8.4.4', '1.0.0.1', '169.254.169.254'],
  ['::1'],
  ['::ffff:127.0.0.1'],
  ['::ffff:7f00:1'],
  ['::7f00:1'],
  ['64:ff9b::a00:1'],
  ['2606:4700::1111', 'fd00:ec2::254'],
  ['fe80::1%eth0'],
  ['not an address'],
]) {
  test(`rejects a name that resolves to ${answers.join(' and ')}, without connecting`, async () => {
    const { open, connected } = connector({ answers: [answers] })
    const error = await failure(open('https://example.com'))
    assert.equal(error.errorClass, 'blocked_address')
    assert.equal(error.message, 'example.com resolves to an address that is not public')
    assert.match(String(error.cause), /example\.com has the address /)
    assert.deepEqual(connected, [])
  })
}

test('rejects a name if any of its addresses is private', async () => {
  const addresses = fc.array(fc.constantFrom<string>('8.8.8.8', '2606:4700::1111'), {
    maxLength: 8,
  })
  await fc.assert(
    fc.asyncProperty(addresses, fc.nat(8), async (answers, at) => {
      const { open, connected } = connector({ answers: [answers.toSpliced(at, 0, '192.168.0.1')] })
      assert.equal((await failure(open('https://example.com'))).errorClass, 'blocked_address')
      assert.deepEqual(connected, [])
    }),
  )
})

for (const origin of [
  'https://127.0.0.1',
  'https://0x7f.1',
  'https://[::1]',
  'https://[::ffff:7f00:1]',
  'https://localhost',
  'https://metadata.google.internal',
  'https://example.com:8443',
  'http://example.com',
]) {
  test(`also rejects ${origin} when sending, without a lookup`, async () => {
    const { open, connected, looked } = connector({})
    const error = await failure(open(origin))
    assert.equal(error.errorClass, 'blocked_address')
    assert.match(error.message, /^(\S+) is refused: it (is|uses|must) /)
    assert.deepEqual([...connected, ...looked], [])
  })
}

for (const peer of ['127.0.0.1', '::ffff:10.0.0.1', '::1']) {
  test(`destroys a connection whose peer turns out to be ${peer}`, async () => {
    const network: Network = (socket) => simulateConnect(socket, peer)
    const { open, sockets } = connector({ answers: [['8.8.8.8', '1.1.1.1']], network })
    const error = await failure(open('https://example.com'))
    assert.equal(error.errorClass, 'blocked_address')
    assert.equal(error.message, 'example.com connected to an address that is not public')
    assert.deepEqual(
      sockets.map(({ destroyed }) => destroyed),
      [true],
    )
  })
}

test('connects to private addresses over http and at any port in development', async () => {
  const { open, connected } = connector({ rules: ANY, answers: [['127.0.0.1']] })
  await open('http://localhost')
  await open('http://10.0.0.1:8080')
  await open('https://[::1]:8443')
  assert.deepEqual(
    connected.map(({ address, port, tls }) => [address, port, tls !== null]),
    [
      ['127.0.0.1', 80, false],
      ['10.0.0.1', 8080, false],
      ['::1', 8443, true],
    ],
  )
})

test('treats a name that is unknown or has no address as a DNS failure', async () => {
  const none = await failure(connector({ answers: [[]] }).open('https://example.com'))
  assert.equal(none.errorClass, 'dns')
  assert.equal(none.message, 'example.com has no address')
  const cause = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' })
  const resolve = (): Promise<never> => Promise.reject(cause)
  const unknown = await failure(connector({ resolve }).open('https://example.com'))
  assert.equal(unknown.errorClass, 'dns')
  assert.equal(unknown.message, 'example.com could not be resolved: ENOTFOUND')
  assert.equal(unknown.cause, cause)
})

test('tries addresses in order until one responds', async () => {
  const network: Network = (socket, target) =>
    (target.address === '1.1.1.1' ? accept : refuse)(socket, target)
  const answers = [['8.8.8.8', '8.8.4.4', '1.1.1.1', '9.9.9.9']]
  const { open, sockets, addresses } = connector({ answers, network })
  assert.equal(await open('https://example.com'), sockets[2])
  assert.deepEqual(addresses(), ['8.8.8.8', '8.8.4.4', '1.1.1.1'])
})

test('tries at most four addresses, and names none in the message', async () => {
  const answers = [['8.8.8.8', '8.8.4.4', '1.1.1.1', '9.9.9.9', '1.0.0.1']]
  const { open, addresses } = connector({ answers, network: refuse })
  const error = await failure(open('https://example.com'))
  assert.equal(error.errorClass, 'connect')
  assert.equal(error.message, 'The connection to example.com failed: ECONNREFUSED')
  assert.equal(addresses().length, 4)
})

test('reports the failure of the first address if none responds', async () => {
  const network: Network = (socket, target) => {
    if (target.address === '8.8.8.8') return refuse(socket, target)
    socket.destroy(Object.assign(new Error('no route'), { code: 'ENETUNREACH' }))
  }
  const { open, connected } = connector({ answers: [['8.8.8.8', '2606:4700::1111']], network })
  const error = await failure(open('https://example.com'))
  assert.equal(error.message, 'The connection to example.com failed: ECONNREFUSED')
  assert.equal(connected.length, 2)
})

test('treats a peer that is already gone as a failed connection', async () => {
  const network: Network = (socket) => simulateConnect(socket, undefined)
  const error = await failure(connector({ network }).open('https://example.com'))
  assert.equal(error.errorClass, 'connect')
})

test('does not try other addresses after a failed handshake, because the receiver was reached', async () => {
  const network: Network = (socket, { address }) => {
    simulateConnect(socket, address)
    const text = 'a text that the receiver chose'
    socket.destroy(Object.assign(new Error(text), { code: 'CERT_HAS_EXPIRED' }))
  }
  const { open, connected } = connector({ answers: [['8.8.8.8', '1.1.1.1']], network })
  const error = await failure(open('https://example.com'))
  assert.equal(error.errorClass, 'tls')
  assert.equal(error.message, 'The TLS handshake with example.com failed: CERT_HAS_EXPIRED')
  assert.equal(connected.length, 1)
})

test('treats a connection that closes during the handshake as a TLS failure', async () => {
  const network: Network = (socket, { address }) => {
    simulateConnect(socket, address)
    socket.destroy()
  }
  const error = await failure(connector({ network }).open('https://example.com'))
  assert.equal(error.errorClass, 'tls')
})

test('treats an exception while connecting as a failed connection', async () => {
  const connect = createConnector({
    rules: PUBLIC,
    resolve: () => Promise.resolve([]),
    dial: () => {
      throw new RangeError('no such port')
    },
  })
  const { promise, resolve } = Promise.withResolvers<Error | null>()
  connect({ protocol: 'https:', hostname: '8.8.8.8', port: '' }, (error, _socket) => resolve(error))
  const error = await promise
  assert(error instanceof ConnectError && error.cause instanceof RangeError)
  assert.equal(error.message, 'The connection to 8.8.8.8 failed')
})

/** Runs all pending callbacks that need no timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

test('a hanging lookup ends with the timeout, and its late result is ignored', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const late = Promise.withResolvers<never>()
  const { open, connected } = connector({ resolve: () => late.promise })
  const opening = failure(open('https://example.com'))
  t.mock.timers.tick(CONNECT_TIMEOUT_MS)
  const error = await opening
  assert.equal(error.errorClass, 'timeout')
  assert.equal(error.message, 'example.com did not respond in time')
  late.reject(new Error('late'))
  await settle()
  assert.deepEqual(connected, [])
})

test('one timeout covers lookup, connection and handshake', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const network: Network = (socket, { address }) => simulateConnect(socket, address)
  const { open, sockets } = connector({ answers: [['8.8.8.8', '1.1.1.1']], network })
  const opening = failure(open('https://example.com'))
  await settle()
  t.mock.timers.tick(CONNECT_TIMEOUT_MS - 1)
  await settle()
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [false],
  )
  t.mock.timers.tick(1)
  assert.equal((await opening).errorClass, 'timeout')
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [true],
  )
})

test('an unresponsive address leaves time for the next, whose handshake may use the rest', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const network: Network = (socket, { address }) => {
    if (address === '1.1.1.1') simulateConnect(socket, address)
  }
  const { open, sockets, addresses } = connector({ answers: [['8.8.8.8', '1.1.1.1']], network })
  const opening = open('https://example.com')
  await settle()
  assert.deepEqual(addresses(), ['8.8.8.8'])
  t.mock.timers.tick(CONNECT_TIMEOUT_MS / 2)
  await settle()
  assert.deepEqual(addresses(), ['8.8.8.8', '1.1.1.1'])
  assert.equal(sockets[0]?.destroyed, true)
  t.mock.timers.tick(CONNECT_TIMEOUT_MS / 2 - 1)
  await settle()
  sockets[1]?.emit('secureConnect')
  assert.equal(await opening, sockets[1])
})

test('takes no longer than the timeout if all addresses are unresponsive', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { open, sockets } = connector({ answers: [['8.8.8.8', '1.1.1.1']], network: silence })
  const opening = failure(open('https://example.com'))
  for (const _half of [1, 2]) {
    await settle()
    t.mock.timers.tick(CONNECT_TIMEOUT_MS / 2)
  }
  assert.equal((await opening).errorClass, 'timeout')
  assert(sockets.every(({ destroyed }) => destroyed))
})

test('sockets use keep-alive and do not delay small packets', async () => {
  const noDelay = mock.method(Socket.prototype, 'setNoDelay')
  const keepAlive = mock.method(Socket.prototype, 'setKeepAlive')
  try {
    await connector({}).open('https://example.com')
    assert.deepEqual(noDelay.mock.calls[0]?.arguments, [true])
    assert.deepEqual(keepAlive.mock.calls[0]?.arguments, [true, 60_000])
  } finally {
    mock.restoreAll()
  }
})

test('leaves no timers or listeners behind, after success or failure', async () => {
  const before = timers()
  const bare = listeners(new Socket())
  for (const network of [accept, refuse, (socket: Socket) => simulateConnect(socket, '10.0.0.1')]) {
    const { open, sockets } = connector({ answers: [['8.8.8.8', '1.1.1.1']], network })
    const [opened] = await Promise.allSettled([open('https://example.com')])
    await settle()
    assert.equal(timers(), before)
    for (const socket of sockets) {
      assert.equal(socket.destroyed, opened.status === 'rejected')
      // A destroyed socket keeps one error listener, because it can still emit an error.
      const own = socket.destroyed ? { ...bare, error: 1 } : bare
      assert.deepEqual(listeners(socket), own)
    }
  }
})

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

function listeners(socket: Socket): Record<string, number> {
  const names = socket.eventNames().map(String)
  return Object.fromEntries(names.map((name) => [name, socket.listenerCount(name)]))
}

test('an error between connecting and handover does not crash the process', async () => {
  const network: Network = (socket, target) => {
    accept(socket, target)
    socket.destroy(new Error('reset at once'))
  }
  const { open, sockets } = connector({ network })
  assert.equal(await open('https://example.com'), sockets[0])
  await settle()
})
