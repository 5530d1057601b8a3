import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { EngineError, startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { EngineFolder, EngineHolder, isRunning, processTree } from '../harness/database/engine.ts'
import { query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually, oneOfManyWithin } from '../harness/timing/eventually.ts'

const service = (dataDir: string) =>
  startEngine({ dataDir, exclusive: true, settings: SMALL_ENGINE })
const command = (dataDir: string) =>
  startEngine({ dataDir, exclusive: false, settings: SMALL_ENGINE })

test('starts within 5 s in an empty folder, and within 1.5 s in an existing one', async () => {
  await oneOfManyWithin(5_000, async () => {
    await using folder = new EngineFolder()
    return await timeStart(folder.dataDir)
  })
  await using existing = EngineFolder.prepared()
  await oneOfManyWithin(1_500, () => timeStart(existing.dataDir))
})

test('an empty folder becomes a durable database with the locale C.UTF-8', async () => {
  await using folder = new EngineFolder()
  await using engine = await service(folder.dataDir)

  const [row] = await query(
    engine.connection,
    `select current_database() as database, datlocprovider as provider, datlocale as locale,
              pg_encoding_to_char(encoding) as encoding, current_setting('fsync') as fsync,
              current_setting('data_checksums') as checksums,
              current_setting('server_version_num')::int / 10000 as major
         from pg_database where datname = current_database()`,
  )
  assert.deepEqual(row, {
    database: 'annals',
    provider: 'b',
    locale: 'C.UTF-8',
    encoding: 'UTF8',
    fsync: 'on',
    checksums: 'on',
    major: 18,
  })
})

test('the password is required, and only its owner can read it', async () => {
  await using folder = new EngineFolder()
  await using engine = await service(folder.dataDir)
  assert.equal(fs.statSync(folder.path('engine.password')).mode & 0o777, 0o600)
  assert.equal(fs.statSync(folder.path('engine')).mode & 0o777, 0o700)
  await assert.rejects(query({ ...engine.connection, password: 'guess' }, 'select 1'), {
    code: '28P01',
  })
})

test('listens on no TCP port', async () => {
  await using folder = EngineFolder.prepared()
  await using engine = await service(folder.dataDir)
  const [row] = await query(engine.connection, `select current_setting('listen_addresses') as at`)
  assert.deepEqual(row, { at: '' })
  if (process.platform !== 'linux') return
  const fds = `/proc/${folder.postmasterPid()}/fd`
  const sockets = fs
    .readdirSync(fds)
    .map((fd) => /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(join(fds, fd)))?.[1])
    .filter((inode) => inode !== undefined)
  assert(sockets.length > 0)
  const tables = ['tcp', 'tcp6'].map((name) => `/proc/net/${name}`).filter(fs.existsSync)
  const tcp = tables.flatMap((path) => fs.readFileSync(path, 'utf8').split(/\s+/))
  assert.deepEqual(
    sockets.filter((inode) => tcp.includes(inode)),
    [],
  )
})

test('rejects a second service with a clear message, without disturbing the first', async () => {
  await using folder = EngineFolder.prepared()
  await using holder = new EngineHolder(folder.dataDir, 'service')
  const connection = await holder.ready()
  await assert.rejects(service(folder.dataDir), (error) => {
    assert(error instanceof EngineError)
    assert.match(error.message, /^Another annals service \(process \d+\) is already running on/)
    assert(error.message.includes(`process ${holder.pid}`))
    assert(error.message.includes(folder.dataDir))
    return true
  })
  assert.deepEqual(await query(connection, 'select 1 as one'), [{ one: 1 }])
})

test('a command attaches to a running engine and leaves it running', async () => {
  await using folder = EngineFolder.prepared()
  await using engine = await service(folder.dataDir)
  const pid = folder.postmasterPid()
  {
    await using visitor = await command(folder.dataDir)
    await query(visitor.connection, 'create table visit as select 1 as one')
  }
  assert.equal(folder.postmasterPid(), pid)
  assert.deepEqual(await query(engine.connection, 'select one from visit'), [{ one: 1 }])
})

test('the last process stops the engine and leaves no process', async () => {
  await using folder = EngineFolder.prepared()
  const visitor = await command(folder.dataDir)
  const owner = await service(folder.dataDir)
  const pids = processTree(folder.postmasterPid())
  assert(pids.length > 1)
  await owner[Symbol.asyncDispose]()
  assert.deepEqual(await query(visitor.connection, 'select 1 as one'), [{ one: 1 }])
  await visitor[Symbol.asyncDispose]()
  await eventually(() => assert.deepEqual(pids.filter(isRunning), []))
  assert.equal(fs.existsSync(folder.path('engine/cluster/postmaster.pid')), false)
})

test('processes that start at once on an empty folder share one engine', async () => {
  await using folder = new EngineFolder()
  await using one = new EngineHolder(folder.dataDir, 'service')
  await using two = new EngineHolder(folder.dataDir, 'command')
  await using three = new EngineHolder(folder.dataDir, 'command')
  const connections = await Promise.all([one.ready(), two.ready(), three.ready()])
  const started = await Promise.all(
    connections.map((connection) => query(connection, 'select pg_postmaster_start_time() as at')),
  )
  assert.deepEqual(started[1], started[0])
  assert.deepEqual(started[2], started[0])
})

test('rejects a data folder of another major version without changing it', async () => {
  await using folder = new EngineFolder()
  fs.mkdirSync(folder.path('engine/cluster'), { recursive: true })
  fs.writeFileSync(folder.path('engine/cluster/PG_VERSION'), '17\n')
  await assert.rejects(service(folder.dataDir), (error) => {
    assert(error instanceof EngineError)
    assert.match(error.message, /created by PostgreSQL 17, but this release runs PostgreSQL 18/)
    return true
  })
  assert.deepEqual(
    fs.readdirSync(folder.dataDir, { recursive: true, encoding: 'utf8' }).toSorted(),
    ['engine', 'engine/cluster', 'engine/cluster/PG_VERSION'],
  )
})

test('a data path too long for a socket works, and leaves nothing outside', async () => {
  await using folder = new EngineFolder({ name: `${'long-'.repeat(24)}path/${'é'.repeat(60)}` })
  const engine = await service(folder.dataDir)
  const { host } = engine.connection
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
  assert(Buffer.byteLength(host) < 100)
  await engine[Symbol.asyncDispose]()
  assert.equal(fs.existsSync(host), false)
})

async function timeStart(dataDir: string): Promise<number> {
  const startedAtMs = performance.now()
  await using engine = await service(dataDir)
  const durationMs = performance.now() - startedAtMs
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
  return durationMs
}
