import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parseDatabaseUrl } from '../../src/platform/pg/server-address.ts'
import { isRejection } from '../../src/platform/pg/pg-error.ts'
import { ServerList } from '../../src/platform/pg/servers.ts'
import { PgSession } from '../../src/platform/pg/pg-session.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { slowLink } from '../harness/http/slow-link.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const { user, password, host, port, database: name } = database.connection

/** A TCP server that passes each connection to `accept`. */
async function listen(accept: (client: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    sockets.add(client)
    client.on('error', () => {})
    accept(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return {
    port: address.port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Connects a client to PostgreSQL. */
function pass(client: Socket): void {
  const upstream = connect(`${host}/.s.PGSQL.${port}`)
  upstream.on('error', () => {})
  client.pipe(upstream).pipe(client)
  client.on('close', () => upstream.destroy())
  upstream.on('close', () => client.destroy())
}

/** Connects a client to PostgreSQL over a link with 3 MB per second. */
function passSlowly(client: Socket): void {
  const upstream = connect(`${host}/.s.PGSQL.${port}`)
  upstream.on('error', () => {})
  client.pipe(slowLink({ bytesPerMs: 3_000 })).pipe(upstream)
  upstream.pipe(client)
  client.on('close', () => upstream.destroy())
}

function openSession(...ports: number[]): PgSession {
  const hosts = ports.map((each) => `127.0.0.1:${each}`).join(',')
  const login = `${user}:${encodeURIComponent(password)}`
  const connection = new ServerList(parseDatabaseUrl(`postgres://${login}@${hosts}/${name}`))
  return new PgSession({ connection, settings: [], name: 'session test', workMsMax: null })
}

test('a failed check of a previous server does not close the connection to the next one', async () => {
  let waiting: Socket | null = null
  // A silent server. On a probe, it closes the session's connection and sends nothing.
  await using silent = await listen((client) => {
    waiting?.destroy()
    waiting ??= client
  })
  await using healthy = await listen(pass)
  await using session = openSession(silent.port, healthy.port)
  // Longer than the probe of the silent server waits.
  const { rows } = await session.use((client) => client.query('select pg_sleep(0.7), 1 as one'))
  assert.equal(rows[0].one, 1)
})

test('a full server rejects the connection, alone or in a list with one that is down', async () => {
  await using proxy = await PgProxy.listen(database.connection)
  proxy.fullFor = 'session test'
  const gone = await listen(() => {})
  await gone[Symbol.asyncDispose]()
  for (const ports of [[proxy.port], [proxy.port, gone.port], [gone.port, proxy.port]]) {
    await using session = openSession(...ports)
    const connecting = session.use(async () => {})
    await assert.rejects(connecting, isRejection, ports.join())
  }
})

test('each server of a list gets the full connection timeout, however long others took', async () => {
  const ROUNDS_UNTIL_GONE = 7
  const slow: Socket[] = []
  // Responds to probes, but is silent to the session and closes its connection after 2.8 s.
  await using first = await listen((client) => {
    slow.push(client)
    if (slow.length > 1) pass(client)
    if (slow.length > ROUNDS_UNTIL_GONE) slow[0]?.destroy()
  })
  // Accepts the session's connection on the second probe, at 3.6 s.
  const late: Socket[] = []
  await using second = await listen((client) => {
    late.push(client)
    if (late.length > 1) pass(client)
    if (late.length === 3 && late[0]) pass(late[0])
  })
  await using session = openSession(first.port, second.port)
  const { rows } = await session.use((client) => client.query('select 1 as one'))
  assert.equal(rows[0].one, 1)
})

const MEASURE = 'select length($1::text) as length'

test('a large statement on a slow link is not treated as lost', async () => {
  await using slow = await listen(passSlowly)
  await using session = openSession(slow.port)
  for (const length of [1, 4_000_000]) {
    const { rows } = await session.use((client) =>
      // Prepared by the first call, so that the server waits for the complete second one.
      client.query({ name: 'measure', text: MEASURE, values: ['x'.repeat(length)] }),
    )
    assert.equal(rows[0].length, length)
  }
})

test('a process that cannot open more files does not treat the database as dead', () => {
  const script = join(import.meta.dirname, '../harness/app/out-of-descriptors.ts')
  const command = `ulimit -n 100; exec ${process.execPath} ${script} "$1"`
  const address = JSON.stringify(database.connection)
  const output = execFileSync('sh', ['-c', command, 'sh', address], { encoding: 'utf8' })
  assert.equal(output, 'true\n')
})
