import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { Client } from 'pg'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import type { EngineConnection } from '../../src/platform/engine/presence.ts'
import { callAs, signInAs } from '../harness/dashboard/dashboard.ts'
import { EngineFolder, query } from '../harness/database/engine.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import { copyCluster, serverListUrl } from '../harness/database/standby.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { urlOf } from '../harness/database/template-db.ts'

const start = (folder: EngineFolder) =>
  startEngine({
    dataDir: folder.dataDir,
    exclusive: false,
    settings: { shared_buffers: '16MB', max_connections: '60' },
  })

/** A cleanly stopped cluster with a company and a signed-in member. */
const stopped = EngineFolder.prepared()
let key = ''
let cookie = ''
before(async () => {
  await using engine = await start(stopped)
  await using annals = await startTestApp({ databaseUrl: urlOf(engine.connection) })
  const tenant = await annals.createCompany()
  key = tenant.workspaceKey
  cookie = (await signInAs(annals, tenant, 'ADMIN')).cookie
})
after(() => stopped[Symbol.asyncDispose]())

/** A primary, a standby, and two nodes that know both: one with all roles, and one worker. */
async function startNodes() {
  await using stack = new AsyncDisposableStack()
  const [folderA, folderB] = [stack.use(new EngineFolder()), stack.use(new EngineFolder())]
  copyCluster(stopped, folderA)
  copyCluster(stopped, folderB, { isStandby: true })
  const a = stack.use(await start(folderA))
  const b = stack.use(await start(folderB))
  const observer = await observe(a.connection)
  stack.defer(() => observer.end())
  const databaseUrl = serverListUrl(a.connection, b.connection)
  const node = stack.use(await startTestApp({ databaseUrl }))
  const worker = stack.use(await startTestApp({ databaseUrl, role: 'worker' }))
  const kept = stack.move()
  return { folderA, a, b, observer, node, worker, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

type Nodes = Awaited<ReturnType<typeof startNodes>>

/** A session on the old primary that survives a smart stop, like those of other programs. */
async function observe(connection: EngineConnection): Promise<Client> {
  const client = new Client({ ...connection, application_name: 'observer' })
  client.on('error', () => {})
  return await client.connect()
}

/** The nodes' sessions on the old primary, except the session of its engine. */
async function sessionsOn(observer: Client): Promise<number> {
  const { rowCount } = await observer.query(
    `select from pg_stat_activity
      where application_name like 'annals%' and application_name not like '%, process %'`,
  )
  return rowCount ?? 0
}

const send = async ({ node }: Nodes, action: string) =>
  await node.call('POST', '/v1/events', { key, body: { category: 'c', action } })

/** Every read on either node uses the new primary, and none the old one. */
async function assertFollowed(nodes: Nodes): Promise<void> {
  const { node, worker, observer, b } = nodes
  const sent = await eventuallyWithin(FOLLOW_MS_MAX, async () => {
    assert.equal(await sessionsOn(observer), 0)
    const response = await send(nodes, 'after')
    assert.equal(response.status, 201)
    return response.json
  })
  const [stored] = await query(b.connection, `select action from event where id = '${sent.id}'`)
  assert.equal(stored?.['action'], 'after')
  for (const listed of [
    await node.call('GET', '/v1/events', { key }),
    await callAs(node, cookie)('GET', '/dashboard/events'),
  ]) {
    assert.equal(listed.status, 200, listed.text)
    assert(listed.json.data.some((event: { id: string }) => event.id === sent.id))
  }
  assert.equal((await node.call('GET', '/ready')).status, 200)
  const { rows } = await sql`select from event where id = ${sent.id}`.execute(
    worker.app.database.db,
  )
  assert.equal(rows.length, 1)
  assert.equal(await sessionsOn(observer), 0)
}

/** How long connections may take to follow a promotion. The check runs every two seconds. */
const FOLLOW_MS_MAX = 5_000

test('reads and writes leave a primary that is stopping as soon as the standby is promoted', async () => {
  await using nodes = await startNodes()
  const { folderA, a, b, observer, node, worker } = nodes
  assert.equal((await send(nodes, 'before')).status, 201)
  assert.equal((await node.call('GET', '/v1/events', { key })).json.data.length, 1)

  // A smart stop: no new sessions, but open ones stay.
  process.kill(folderA.postmasterPid(), 'SIGTERM')
  await eventually(() => assert.rejects(query(a.connection, 'select 1'), /shutting down/))
  // Until there is another primary, the nodes keep using the old one.
  assert.equal((await node.call('GET', '/v1/events', { key })).json.data.length, 1)
  assert((await sessionsOn(observer)) > 0)

  // A connection that is kept across statements, as for a lock or a cursor.
  const acquired = Promise.withResolvers<void>()
  const holding = worker.app.database.db.connection().execute(async (db) => {
    await sql`select pg_advisory_lock(1)`.execute(db)
    acquired.resolve()
    await eventually(async () => assert.equal(await sessionsOn(observer), 0))
    await sql`select 1`.execute(db)
  })
  const ended = assert.rejects(holding, /[Cc]onnection|not queryable/)
  await acquired.promise
  await query(b.connection, 'select pg_promote()')
  await assertFollowed(nodes)
  await ended
})

test('reads follow to the new primary when the old one becomes read-only and keeps its sessions', async () => {
  await using nodes = await startNodes()
  const { a, b, node } = nodes
  assert.equal((await send(nodes, 'before')).status, 201)
  assert.equal((await node.call('GET', '/v1/events', { key })).json.data.length, 1)

  await query(a.connection, 'alter system set default_transaction_read_only = on')
  await query(a.connection, 'select pg_reload_conf()')
  await query(b.connection, 'select pg_promote()')
  await assertFollowed(nodes)
})
