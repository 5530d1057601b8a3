import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { SERVE_ROLES, type ServeRole } from '../../src/serve-role.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { openSource } from '../harness/http/event-source.ts'
import { eventually, oneOfManyWithin } from '../harness/timing/eventually.ts'
import { makeExport, openDownload, storeBulk } from '../harness/export/exports.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { hang, startReceiver } from '../harness/webhook/receiver.ts'
import { call, startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const IDLE_MS_MAX = 2_000
const BUSY_MS_MAX = 10_000

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const env = { ANNALS_SECRET_KEY: randomBytes(32).toString('base64'), ...ANY_DESTINATION }
// Only prepares the data for the processes below and inspects the result.
const annals = stack.use(await startTestApp({ env, role: 'api' }))
const company = await annals.createCompany()
const { workspaceKey: key } = company

type Node = { process: AnnalsProcess; url: string }

function launch(role: ServeRole, more: Record<string, string> = {}): AnnalsProcess {
  return new AnnalsProcess(['serve', '--role', role], {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_ARCHIVE_URL: annals.archiveUrl,
    ANNALS_PORT: '0',
    ...env,
    ...more,
  })
}

async function start(role: ServeRole, more: Record<string, string> = {}): Promise<Node> {
  const process = launch(role, more)
  const [, line = ''] = await process.printed(/(\{.*"event":"service\.started".*\})/)
  return { process, url: JSON.parse(line).url ?? '' }
}

type Stop = { stdout: string; durationMs: number }

async function endBy(
  { process }: Node,
  signal: NodeJS.Signals,
  { exitCode }: { exitCode: number },
): Promise<Stop> {
  const startedAtMs = performance.now()
  process.signal(signal)
  // A node that never ends fails the test instead of blocking it.
  AbortSignal.timeout(2 * BUSY_MS_MAX).addEventListener('abort', () => process.signal('SIGKILL'))
  const { code, stdout } = await process.exited
  const durationMs = Math.round(performance.now() - startedAtMs)
  assert.equal(code, exitCode, stdout)
  return { stdout, durationMs }
}

const stop = (node: Node): Promise<Stop> => endBy(node, 'SIGTERM', { exitCode: 0 })

async function stopBusy(node: Node): Promise<string> {
  const { stdout, durationMs } = await stop(node)
  assert(durationMs < BUSY_MS_MAX, `stopping took ${durationMs} ms: ${stdout}`)
  return stdout
}

for (const role of SERVE_ROLES) {
  test(`an idle node (${role}) stops within two seconds, with exit code 0`, async () => {
    await oneOfManyWithin(IDLE_MS_MAX, async () => {
      const node = await start(role)
      await using connections = new AsyncDisposableStack()
      if (node.url !== '') {
        // Keep-alive connections, one of which has never sent a request.
        connections.use(new RawConnection(node.url))
        const { status } = await call(`${node.url}/v1/keys/status`, 'GET', { key })
        assert.equal(status, 200)
      }
      return (await stop(node)).durationMs
    })
  })
}

test('a node that waits for the migration lock stops within two seconds, with exit code 0', async () => {
  const holder = new Client(annals.database.connection)
  await holder.connect()
  await using _ended = { [Symbol.asyncDispose]: () => holder.end() }
  await holder.query('select pg_advisory_lock(4207001)')
  await oneOfManyWithin(IDLE_MS_MAX, async () => {
    await using process = launch('worker')
    await process.printed(/"event":"migration\.waiting"/)
    const { stdout, durationMs } = await stop({ process, url: '' })
    assert.match(stdout, /"event":"service\.stopping"/)
    return durationMs
  })
})

test('a node whose database accepts the connection but does not respond stops within two seconds', async () => {
  await using sockets = new AsyncDisposableStack()
  const server = createServer((socket) => sockets.defer(() => void socket.destroy()))
  sockets.defer(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const url = `postgres://a:b@127.0.0.1:${address.port}/c`
  await oneOfManyWithin(IDLE_MS_MAX, async () => {
    const connected = once(server, 'connection')
    await using process = launch('worker', { ANNALS_DATABASE_URL: url })
    await connected
    return (await stop({ process, url: '' })).durationMs
  })
})

/**
 * Blocks one of Node's file threads forever, like a network mount that hangs: no process ever opens
 * the other end of the pipe.
 */
const BLOCK_A_THREAD = `
  import { open } from 'node:fs'
  open(new URL('pipe', import.meta.url), () => {})
`

/** Sends the signal while the service's modules are being loaded. */
const SIGNAL_AT_IMPORT = `
  import { registerHooks } from 'node:module'
  registerHooks({
    load: (url, context, next) => {
      if (url.endsWith('/server/src/app.ts')) process.kill(process.pid, 'SIGTERM')
      return next(url, context)
    },
  })
`

test('a node that gets SIGTERM while it loads its modules ends with exit code 0', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-early-'))
  const preload = join(folder.path, 'signal.mjs')
  await writeFile(preload, SIGNAL_AT_IMPORT)
  const process = launch('all', { NODE_OPTIONS: `--import ${preload}` })
  const { code, stdout, stderr } = await process.exited
  assert.deepEqual([code, stderr], [0, ''])
  assert.doesNotMatch(stdout, /service\.started/)
})

test('a node with a blocked file thread stops within two seconds, with exit code 0', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-blocked-'))
  const preload = join(folder.path, 'block.mjs')
  await writeFile(preload, BLOCK_A_THREAD)
  execFileSync('mkfifo', [join(folder.path, 'pipe')])
  const more = { NODE_OPTIONS: `--import ${preload}` }
  await oneOfManyWithin(
    IDLE_MS_MAX,
    async () => (await stop(await start('worker', more))).durationMs,
  )
})

/** A request whose body doesn't end keeps a node busy until it cuts the connection. */
async function sendSlowBody(node: Node): Promise<RawConnection> {
  const connection = new RawConnection(node.url)
  connection.send(
    `POST /v1/events HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\n` +
      'content-type: application/json\r\ncontent-length: 999\r\n\r\n{',
  )
  // The response comes after the bytes above have arrived.
  assert.equal((await call(`${node.url}/v1/keys/status`, 'GET', { key })).status, 200)
  return connection
}

/** Signals within two seconds count as one. */
async function untilNextSignalCounts(signaledAtMs: number): Promise<void> {
  await eventually(() => assert(performance.now() - signaledAtMs > 2_100))
}

test('a busy node that gets SIGTERM, SIGHUP and SIGPIPE again finishes its stop, with exit code 0', async () => {
  const node = await start('api')
  await using _slowBody = await sendSlowBody(node)
  const signaledAtMs = performance.now()
  node.process.signal('SIGPIPE')
  assert.equal((await call(`${node.url}/ready`, 'GET')).status, 200)
  node.process.signal('SIGTERM')
  await untilNextSignalCounts(signaledAtMs)
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGPIPE'] as const) node.process.signal(signal)
  const output = await stopBusy(node)
  assert.equal(output.match(/"event":"service\.stopping"/g)?.length, 1)
  assert.doesNotMatch(output, /service\.killed/)
})

test('a second Ctrl+C ends a busy node immediately, with exit code 1', async () => {
  const node = await start('api')
  await using _slowBody = await sendSlowBody(node)
  const signaledAtMs = performance.now()
  node.process.signal('SIGTERM')
  await untilNextSignalCounts(signaledAtMs)
  // A node that finished its stop would exit with code 0.
  await endBy(node, 'SIGINT', { exitCode: 1 })
})

test('a busy node stops within ten seconds, with exit code 0, and keeps acknowledged events', async () => {
  await using receiver = await startReceiver(hang)
  await makeWebhook(annals, company, { url: receiver.url })
  await storeBulk(annals, key, 400)
  const jobId = await makeExport(annals, key, {})
  const owner = await signInAs(annals, company, 'OWNER')
  const node = await start('all')
  const at = { ...annals, url: node.url }

  await using source = await openSource(at, owner)
  assert.equal(source.status, 200)
  const { response: download } = await openDownload(at, key, jobId)
  assert.equal(download.statusCode, 200)
  await using _slowBody = await sendSlowBody(node)
  await eventually(() => assert(receiver.requests.length > 0))
  const locker = new Client(annals.database.connection)
  await locker.connect()
  await using _ended = { [Symbol.asyncDispose]: () => locker.end() }
  await locker.query('begin; lock table explorer_view in access exclusive mode')
  const stuck = call(`${node.url}/dashboard/explorer/views`, 'GET', {
    headers: { cookie: owner.cookie, 'sec-fetch-site': 'same-origin' },
  })
  const sent = Array.from({ length: 50 }, () =>
    call(`${node.url}/v1/events`, 'POST', { key, body: { category: 'last', action: 'a' } }),
  )
  // Handled from the start: connections that the node has not accepted yet are reset when it stops.
  const settled = Promise.allSettled(sent)
  await sent[0]

  const signaledAtMs = performance.now()
  const stopped = stopBusy(node)
  await untilNextSignalCounts(signaledAtMs)
  node.process.signal('SIGTERM')
  await assert.rejects(stuck)
  await stopped
  const responses = (await settled).flatMap((result) =>
    result.status === 'fulfilled' ? [result.value] : [],
  )
  const acknowledged = responses.filter(({ status }) => status === 201)
  const page = await annals.call('GET', '/v1/events?category=last&limit=100', { key })
  const stored = new Set(page.json.data.map(({ id }: { id: string }) => id))
  assert(acknowledged.length > 0 && acknowledged.every(({ json }) => stored.has(json.id)))
})

/** Locks a table until the returned client ends; `untilWaiting` resolves when a statement waits for the lock. */
async function lockTable(clients: AsyncDisposableStack, table: string) {
  const [locker, admin] = [1, 2].map(() => new Client(annals.database.connection))
  assert(locker && admin)
  for (const client of [locker, admin]) {
    await client.connect()
    clients.defer(() => client.end())
  }
  await locker.query(`begin; lock table ${table} in access exclusive mode`)
  const untilWaiting = () =>
    eventually(async () => {
      const { rowCount } = await admin.query(
        `select from pg_locks where relation = '${table}'::regclass and not granted`,
      )
      assert((rowCount ?? 0) > 0)
    })
  return { untilWaiting }
}

test('the dedicated connection of a worker that waits for a lock is cut when its node stops', async () => {
  await using clients = new AsyncDisposableStack()
  // The partition worker reads it right after the start.
  const { untilWaiting } = await lockTable(clients, 'event_default')
  const node = await start('worker')
  clients.use(node.process)
  await untilWaiting()
  assert.doesNotMatch(await stopBusy(node), /service\.killed/)
})

test('background work opens no connection after the cut, and the log does not contain the database password', async () => {
  await using clients = new AsyncDisposableStack()
  await using receiver = await startReceiver(hang)
  await makeWebhook(annals, company, { url: receiver.url })
  const node = await start('worker')
  clients.use(node.process)
  await annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  await eventually(() => assert(receiver.requests.length > 0))
  const { untilWaiting } = await lockTable(clients, 'webhook_delivery')
  await untilWaiting()
  // Releasing the lease of the delivery would wait for the lock too.
  const output = await stopBusy(node)
  assert.doesNotMatch(output, /service\.killed/)
  // Which of them depends on whether the cut finds a connection idle or in use.
  assert.match(output, /connection\.lost|lease\.kept/)
  assert(!output.includes(annals.database.connection.password), 'the log has the password')
})
