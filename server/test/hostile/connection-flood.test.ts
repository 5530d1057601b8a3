import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { OPEN_FILES_MAX, startLimitedService } from '../harness/app/limited-service.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { SlowReader } from '../harness/http/slow-reader.ts'
import { call, createCompanyIn } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const ANONYMOUS_CLIENTS = 320
/** More than 150 connections together, and each has fewer bodies than the limit per caller. */
const SLOW_CALLERS = 10
const BODIES_PER_CALLER = 18
/** One in eight of the 150 connections. */
const BODIES_PER_COMPANY_MAX = 19
const UNFINISHED_AT_ONCE = 80
const FLOOD_CONNECTIONS = 100
const REFUSALS_PER_SECOND = 100
const FLOOD_SECONDS = 0.5
const READER_ROUNDS = process.env.FAULT_SECONDS === undefined ? 1 : 2
const EVENT = JSON.stringify({ category: 'auth', action: 'user.login', actor: { id: 'u-17' } })

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const email = 'member@example.com'
const password = 'correct horse battery'
const { workspaceKey: key } = await createCompanyIn(database, { email, password })

const service = stack.use(await startLimitedService(database))
const { url, metricsUrl } = service

/** On a connection of its own. */
const createEvent = () =>
  call(`${url}/v1/events`, 'POST', { key, text: EVENT, headers: { connection: 'close' } })

/** The head of a request that stores EVENT. */
function headOf(bearer: string, ...more: string[]): string {
  return requestHead('/v1/events', `authorization: Bearer ${bearer}`, ...more)
}

function requestHead(path: string, ...more: string[]): string {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: x',
    'content-type: application/json',
    `content-length: ${EVENT.length}`,
    ...more,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** Each on a connection of its own. */
async function assertNewClientsAreServed(): Promise<void> {
  const headers = { connection: 'close' }
  const body = { email, password }
  const statuses = [
    (await createEvent()).status,
    (await call(`${url}/health`, 'GET', { headers })).status,
    (await call(`${url}/dashboard/session`, 'POST', { body, headers })).status,
  ]
  assert.deepEqual(statuses, [201, 200, 200])
}

test('serves new clients and running requests while others hold more connections than it can open', async () => {
  // Connects the writer to the database, which the flood on the same processor could delay.
  assert.equal((await createEvent()).status, 201)
  await using running = new RawConnection(url)
  running.send(headOf(key, 'expect: 100-continue'))
  assert.equal((await running.response()).status, 100, 'the service waits for the body')

  await using anonymous = new AsyncDisposableStack()
  const flood = Array.from({ length: ANONYMOUS_CLIENTS }, () =>
    anonymous.use(new RawConnection(url)),
  )
  const responses = flood.map((each) =>
    each.send('GET /health HTTP/1.1\r\nhost: x\r\n\r\n').response(),
  )
  await Promise.allSettled(responses)

  const created = await createEvent()
  assert.equal(created.status, 201, created.text)
  assert.equal((await running.send(EVENT).response()).status, 201)
  const listed = await call(`${url}/v1/events`, 'GET', { key })
  assert.equal(listed.json.data.length, 3)

  const { text } = await call(`${metricsUrl}/metrics`, 'GET')
  const open = Number(/^annals_http_connection_open_count (\d+)$/m.exec(text)?.[1])
  assert(open > 0 && open <= OPEN_FILES_MAX / 2, `${open} connections are open`)
  assert.match(text, /^annals_http_connection_limit_total\{outcome="evicted"\} [1-9]\d*$/m)
  await service.process.printed(
    /"event":"open-files.limited","openFilesMax":300,"connectionsMax":150/,
  )
  await service.process.printed(/"event":"connection.evicted".*"connectionsMax":150/)
})

test('a company whose request bodies never end leaves connections for others', async () => {
  const { workspaceKey: hostileKey } = await createCompanyIn(database)
  await using unfinished = new AsyncDisposableStack()
  const ends: (number | 'closed')[] = []
  for (let sent = 1; sent <= ANONYMOUS_CLIENTS; sent += 1) {
    const connection = unfinished.use(new RawConnection(url))
    connection
      .send(`${headOf(hostileKey)}{`)
      .response()
      .then(
        ({ status }) => ends.push(status),
        () => ends.push('closed'),
      )
    if (sent % UNFINISHED_AT_ONCE === 0) await eventually(() => assertRefused(ends, sent))
  }
  // Their refusals are delayed, so some connections are closed for newer ones before that.
  assert(ends.every((end) => end === 429 || end === 'closed'))
  assert(ends.includes(429))
  const created = await createEvent()
  assert.equal(created.status, 201, created.text)
})

/** All but the few whose bodies the service still waits for. */
function assertRefused({ length }: unknown[], sent: number): void {
  assert(length >= sent - BODIES_PER_COMPANY_MAX, `${length} of ${sent} have ended`)
}

test('serves new clients while anonymous callers hold all connections with slow bodies', async () => {
  await using anonymous = new AsyncDisposableStack()
  const paths = ['/dashboard/links/look', '/dashboard/session', '/dashboard/password-reset']
  for (let network = 1; network <= SLOW_CALLERS; network += 1) {
    const localAddress = `127.0.${network}.1`
    for (let nth = 0; nth < BODIES_PER_CALLER; nth += 1) {
      const head = requestHead(paths[nth % paths.length] ?? '')
      anonymous.use(new RawConnection(url, { localAddress })).send(`${head}{`)
    }
  }
  await untilFull()
  await assertNewClientsAreServed()
})

test('serves new clients while companies hold all connections with slow bodies', async () => {
  await using unfinished = new AsyncDisposableStack()
  for (let company = 0; company < SLOW_CALLERS; company += 1) {
    const { workspaceKey } = await createCompanyIn(database)
    for (let nth = 0; nth < BODIES_PER_CALLER; nth += 1) {
      unfinished.use(new RawConnection(url)).send(`${headOf(workspaceKey)}{`)
    }
  }
  await untilFull()
  await assertNewClientsAreServed()
})

test('serves new clients while anonymous callers read the API reference script slowly', async () => {
  await using anonymous = new AsyncDisposableStack()
  const script = 'GET /docs/js/scalar.js HTTP/1.1\r\nhost: x\r\n\r\n'
  let opened = 0
  const open = () => {
    // Few enough per network that no response is delayed.
    const localAddress = `127.0.${50 + (opened % 20)}.1`
    opened += 1
    // One script could fit into the buffers of the kernel.
    return anonymous.use(new SlowReader(url, script.repeat(3), { localAddress }))
  }
  const slow: SlowReader[] = []
  for (let round = 0; round < READER_ROUNDS; round += 1) {
    slow.push(...Array.from({ length: ANONYMOUS_CLIENTS / 2 }, open))
    for (const each of slow) each.readSome(1_024)
    await Promise.all(slow.map(({ begun }) => begun))
    await untilFull()
    await assertNewClientsAreServed()
  }
})

const UNKNOWN = 'GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n'

test('a flood gets no more rejections on most of the connections than on a few', async () => {
  const statuses: number[] = []
  const startedMs = performance.now()
  const seconds = () => (performance.now() - startedMs) / 1_000
  const flood = async () => {
    await using connection = new RawConnection(url, { localAddress: '127.0.101.1' })
    while (seconds() < FLOOD_SECONDS)
      statuses.push((await connection.send(UNKNOWN).response()).status)
  }
  await Promise.all(Array.from({ length: FLOOD_CONNECTIONS }, flood))
  assert.deepEqual(new Set(statuses), new Set([404]))
  const max = REFUSALS_PER_SECOND * (1 + seconds()) + FLOOD_CONNECTIONS
  assert(statuses.length <= max, `${statuses.length} refusals in ${seconds()} s`)
})

test('serves new clients while anonymous callers hold all connections with delayed rejections', async () => {
  await using anonymous = new AsyncDisposableStack()
  for (let nth = 0; nth < ANONYMOUS_CLIENTS; nth += 1) {
    const client = anonymous.use(new RawConnection(url, { localAddress: '127.0.100.1' }))
    // The first ones use up the immediate responses.
    client.send(UNKNOWN.repeat(2))
  }
  await untilFull()
  await assertNewClientsAreServed()
})

async function untilFull(): Promise<void> {
  await eventually(async () => {
    const { text } = await call(`${metricsUrl}/metrics`, 'GET')
    assert.match(text, /^annals_http_connection_open_count 150$/m)
  })
}

test('serves metrics while anonymous callers hold connections to the metrics port', async () => {
  await using anonymous = new AsyncDisposableStack()
  const flood = Array.from({ length: 40 }, () => anonymous.use(new RawConnection(metricsUrl)))
  // Without a response: they were closed for the newer ones, not because they were slow.
  for (const each of flood.slice(0, 40 - 16)) assert.equal(await each.closed(), '')
  assert.equal((await call(`${metricsUrl}/metrics`, 'GET')).status, 200)
})
