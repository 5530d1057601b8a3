import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { OperatorError } from '../../src/errors.ts'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import type { EngineConnection } from '../../src/platform/engine/presence.ts'
import { EngineFolder, query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { copyCluster, serverListUrl } from '../harness/database/standby.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { urlOf } from '../harness/database/template-db.ts'

const start = (folder: EngineFolder) =>
  startEngine({ dataDir: folder.dataDir, exclusive: false, settings: SMALL_ENGINE })

/** A cleanly stopped cluster with a database created as documented. */
const stopped = new EngineFolder()
after(() => stopped[Symbol.asyncDispose]())
const prepared = prepare()
prepared.catch(() => {}) // Each test awaits it.

async function prepare() {
  await using engine = await start(stopped)
  // Like the master user of a managed database, which is not a superuser.
  await query(engine.connection, "create role master login createrole createdb password 'm'")
  const master = { ...engine.connection, user: 'master', password: 'm', database: 'postgres' }
  for (const statement of documentedStatements()) await query(master, statement)
  const own = { ...engine.connection, user: 'app', password: 'secret', database: 'app' }
  await using annals = await startTestApp({ databaseUrl: urlOf(own) })
  const { workspaces } = await annals.createCompany({ workspaces: ['A', 'B', 'C', 'D', 'E'] })
  const keys = workspaces.map(({ workspaceKey }) => workspaceKey)
  return { master, own, keys }
}

/** The documented statements with other names, because the engine already has a login `annals`. */
function documentedStatements(): string[] {
  const docs = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8')
  const [, block = ''] = /```sql\n(create role annals_serving.*?)```/s.exec(docs) ?? []
  const renamed = block.replaceAll(/\bannals\b/g, 'app').replaceAll('…', 'secret')
  const statements = renamed.split(';').map((statement) => statement.trim())
  return statements.filter((statement) => statement !== '')
}

const send = async (annals: TestApp, key: string, action: string): Promise<number> =>
  (await annals.call('POST', '/v1/events', { key, body: { category: 'c', action } })).status

const actionsOn = async (connection: EngineConnection): Promise<unknown[]> =>
  (await query(connection, 'select action from event order by seq')).map((row) => row['action'])

test('the documented statements work for a master user that is not a superuser', async () => {
  const { own, master } = await prepared
  await using folder = new EngineFolder()
  copyCluster(stopped, folder)
  await using engine = await start(folder)
  const { host } = engine.connection
  await using annals = await startTestApp({ databaseUrl: urlOf({ ...own, host }) })
  const { workspaceKey } = await annals.createCompany()
  assert.equal(await send(annals, workspaceKey, 'served'), 201)
  const login = { ...own, host }
  const [role] = await query(login, 'select rolsuper from pg_roles where rolname = current_user')
  assert.equal(role?.['rolsuper'], false)
  await query(login, 'set role annals_keeper')

  // A login without one of the roles, as after a restore on another server.
  await query({ ...master, host }, 'revoke annals_keeper from app')
  await assert.rejects(startTestApp({ databaseUrl: urlOf(login) }), (error) => {
    assert(error instanceof OperatorError, String(error))
    return /The database returned an error: permission denied to set role "annals_keeper"/.test(
      error.message,
    )
  })

  // The master user as the login of the service.
  await query({ ...master, host }, 'create database other')
  const other = { ...master, host, database: 'other' }
  await using second = await startTestApp({ databaseUrl: urlOf(other) })
  const { workspaceKey: otherKey } = await second.createCompany()
  assert.equal(await send(second, otherKey, 'served'), 201)
})

test('a list of servers leads to the writable one, even after a failover', async () => {
  const { own, keys } = await prepared
  const [key = ''] = keys
  await using folderA = new EngineFolder()
  await using folderB = new EngineFolder()
  copyCluster(stopped, folderA)
  copyCluster(stopped, folderB, { isStandby: true })

  await using stack = new AsyncDisposableStack()
  const a = await start(folderA)
  stack.defer(() => a[Symbol.asyncDispose]())
  const b = stack.use(await start(folderB))
  const [onA, onB] = [a, b].map(({ connection }) => ({ ...own, host: connection.host }))
  assert(onA && onB)
  const databaseUrl = serverListUrl(onB, onA)
  await using annals = await startTestApp({ databaseUrl })
  assert.equal(await send(annals, key, 'on the primary'), 201)
  assert.deepEqual(await actionsOn(onA), ['on the primary'])

  // The standby takes over and the old primary becomes read-only: the pool moves on.
  await query(b.connection, 'select pg_promote()')
  await query(a.connection, 'alter system set default_transaction_read_only = on')
  await query(a.connection, 'select pg_reload_conf()')
  await eventually(async () => {
    // The old primary may still accept this one, because it reloads its settings a moment later.
    const { company } = await annals.createCompany({ company: 'After' })
    const [stored] = await query(onB, `select name from company where id = '${company.id}'`)
    assert.equal(stored?.['name'], 'After')
  })

  // The old primary is down: the writer moves on too.
  await a[Symbol.asyncDispose]()
  await eventually(async () => assert.equal(await send(annals, key, 'after the failover'), 201))
  assert((await actionsOn(onB)).includes('after the failover'))
})

test('between the loss of the primary and the promotion of the standby, reads and writes get 503', async () => {
  const { own, keys } = await prepared
  await using folderA = new EngineFolder()
  await using folderB = new EngineFolder()
  copyCluster(stopped, folderA)
  copyCluster(stopped, folderB, { isStandby: true })

  await using stack = new AsyncDisposableStack()
  const a = await start(folderA)
  stack.defer(() => a[Symbol.asyncDispose]())
  const b = stack.use(await start(folderB))
  const onA = { ...own, host: a.connection.host }
  const databaseUrl = serverListUrl(onA, { ...own, host: b.connection.host })
  await using annals = await startTestApp({ databaseUrl })
  // No request has used the others yet, so none of them is cached.
  const [first = '', ...unused] = keys
  assert.equal(await send(annals, first, 'before'), 201)

  await a[Symbol.asyncDispose]()
  await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 503))
  for (const key of unused) {
    const read = await annals.call('GET', '/v1/events', { key })
    assert.deepEqual([read.status, read.json.code], [503, 'unavailable'])
    assert.equal(await send(annals, key, 'in between'), 503)
    assert.equal(await send(annals, first, 'in between'), 503)
  }
  await query(b.connection, 'select pg_promote()')
  await eventually(async () => assert.equal(await send(annals, first, 'after'), 201))
})

test('without a writable server, startup reports the response of each server in the list', async () => {
  const { own } = await prepared
  await using folder = new EngineFolder()
  copyCluster(stopped, folder, { isStandby: true })
  await using engine = await start(folder)
  const standby = { ...own, host: engine.connection.host }
  const { user, password, database, host, port } = standby
  const gone = `${host}-gone`
  const hosts = new URLSearchParams({ host: `${gone},${host}`, port: String(port) })
  const login = `${user}:${encodeURIComponent(password)}`
  const databaseUrl = `postgres://${login}@/${database}?${hosts.toString()}`
  await assert.rejects(startTestApp({ databaseUrl }), (error) => {
    assert(error instanceof OperatorError, String(error))
    assert(error.message.includes(`${gone}:${port}: connect ENOENT`), error.message)
    assert(error.message.includes(`${host}:${port} is read-only or a standby`), error.message)
    return !error.message.includes(password)
  })
  // A single standby, without a list.
  await assert.rejects(startTestApp({ databaseUrl: urlOf(standby) }), (error) => {
    assert(error instanceof OperatorError, String(error))
    return error.message.startsWith('The database is read-only')
  })
})
