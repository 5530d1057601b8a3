import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'

import { EngineError, startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { acquireFileLock } from '../../src/platform/file-lock.ts'
import { EngineFolder, EngineHolder, isRunning, processTree } from '../harness/database/engine.ts'
import { query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually, oneOfManyWithin, within } from '../harness/timing/eventually.ts'

const service = (dataDir: string) =>
  startEngine({ dataDir, exclusive: true, settings: SMALL_ENGINE })

test('a killed engine restarts on its own with every committed row', async () => {
  await using folder = EngineFolder.prepared()
  const events: unknown[] = []
  const note = (fields: Record<string, unknown>) => events.push(fields['event'])
  await using engine = await startEngine({
    dataDir: folder.dataDir,
    exclusive: true,
    settings: SMALL_ENGINE,
    logger: { info: note, warn: note },
  })
  await query(engine.connection, 'create table kept as select generate_series(1, 1000) as n')
  const pid = folder.postmasterPid()
  process.kill(pid, 'SIGKILL')
  const rows = await eventually(async () => {
    assert.notEqual(folder.postmasterPid(), pid)
    return query(engine.connection, 'select count(*)::int as count from kept')
  })
  assert.deepEqual(rows, [{ count: 1000 }])
  await eventually(() => assert.equal(events.at(-1), 'engine.started'))
  assert.deepEqual(events.slice(0, 2), ['engine.started', 'engine.lost'])
  // The service has taken the lock against a second service again.
  await assert.rejects(service(folder.dataDir), /already running/)
})

test('a service whose engine is killed during a query recovers', async () => {
  await using folder = EngineFolder.prepared()
  await using engine = await service(folder.dataDir)
  const busy = query(engine.connection, 'select pg_sleep(600)').catch(() => 'broken')
  const running = `select 1 from pg_stat_activity where query like 'select pg_sleep%'`
  await eventually(async () => assert.equal((await query(engine.connection, running)).length, 1))
  process.kill(folder.postmasterPid(), 'SIGKILL')
  assert.equal(await busy, 'broken')
  await eventually(() => query(engine.connection, 'select 1'))
})

test('exiting right after the engine was killed leaves no process', async () => {
  await using folder = EngineFolder.prepared()
  const engine = await service(folder.dataDir)
  const pids = processTree(folder.postmasterPid())
  process.kill(folder.postmasterPid(), 'SIGKILL')
  await engine[Symbol.asyncDispose]()
  await eventually(() => assert.deepEqual(pids.filter(isRunning), []))
  assert.deepEqual(processTree(folder.postmasterPid()), [])
})

test('the engine of a killed service is adopted, and stopped by its new user', async () => {
  await using folder = EngineFolder.prepared()
  const holder = new EngineHolder(folder.dataDir, 'service')
  await query(await holder.ready(), 'create table kept as select 1 as one')
  const pid = folder.postmasterPid()
  await holder.kill()

  const engine = await service(folder.dataDir)
  assert.equal(folder.postmasterPid(), pid)
  assert.deepEqual(await query(engine.connection, 'select one from kept'), [{ one: 1 }])
  await engine[Symbol.asyncDispose]()
  await eventually(() => assert.equal(isRunning(pid), false))
})

test('a process killed at any moment of the first start does not block the next one', async () => {
  await using folder = new EngineFolder()
  const steps = [
    'engine',
    'engine.password.new',
    'engine/cluster',
    'engine.password',
    'engine/cluster/postmaster.pid',
  ]
  for (const nth of steps.keys()) {
    const holder = new EngineHolder(folder.dataDir, 'service')
    // Also if this file is gone already, and a later one exists.
    const isReached = () => steps.slice(nth).some((step) => fs.existsSync(folder.path(step)))
    await eventually(() => assert(isReached()))
    await holder.kill()
  }
  await using engine = await service(folder.dataDir)
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
  const names = fs.readdirSync(folder.path('engine')).toSorted()
  assert.deepEqual(names, ['cluster', 'log', 'run'])
})

test('a stale pid that now belongs to another process does not prevent a start', async () => {
  await using folder = EngineFolder.prepared()
  await (await service(folder.dataDir))[Symbol.asyncDispose]()
  const stale = `${process.pid}\n${folder.path('engine/cluster')}\n`
  fs.writeFileSync(folder.path('engine/cluster/postmaster.pid'), stale)
  fs.writeFileSync(folder.path('engine/run/.s.PGSQL.5432.lock'), stale)
  await using engine = await service(folder.dataDir)
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
})

test('an engine that cannot start reports why in one sentence and leaves no process', async () => {
  await using folder = EngineFolder.prepared()
  await (await service(folder.dataDir))[Symbol.asyncDispose]()
  const control = folder.path('engine/cluster/global/pg_control')
  fs.writeFileSync(control, Buffer.alloc(fs.statSync(control).size))
  await assert.rejects(service(folder.dataDir), (error) => {
    assert(error instanceof EngineError)
    assert.match(error.message, /failed to start: .*database files are incompatible/)
    assert.equal(error.message.includes('\n'), false)
    return true
  })
  assert.equal(fs.existsSync(folder.path('engine/cluster/postmaster.pid')), false)
})

test('reports a lost password with a clear message, without creating a new database', async () => {
  await using folder = EngineFolder.prepared()
  await (await service(folder.dataDir))[Symbol.asyncDispose]()
  fs.rmSync(folder.path('engine.password'))
  await assert.rejects(service(folder.dataDir), /engine\.password is missing/)
})

test('a first start that was killed before it stored the password can be repeated', async () => {
  await using folder = EngineFolder.prepared()
  await (await service(folder.dataDir))[Symbol.asyncDispose]()
  fs.renameSync(folder.path('engine.password'), folder.path('engine.password.new'))
  await using engine = await service(folder.dataDir)
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
  assert.equal(fs.existsSync(folder.path('engine.password.new')), false)
})

test('a service does not create an empty database if its own was removed', async () => {
  await using folder = EngineFolder.prepared()
  const refused = Promise.withResolvers<unknown>()
  await using engine = await startEngine({
    dataDir: folder.dataDir,
    exclusive: true,
    settings: SMALL_ENGINE,
    logger: {
      info: () => {},
      warn: ({ event, err }) => event === 'engine.refused' && refused.resolve(err),
    },
  })
  const pids = processTree(folder.postmasterPid())
  fs.renameSync(folder.path('engine/cluster'), folder.path('engine/elsewhere'))
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  assert.match(String(await refused.promise), /is missing, and no new one was created/)
  assert.equal(fs.existsSync(folder.path('engine/cluster')), false)
  await assert.rejects(query(engine.connection, 'select 1'))
})

test('an aborted start ends within two seconds and leaves no engine running', async () => {
  await using folder = new EngineFolder()
  // Once while initdb runs, and once while PostgreSQL starts.
  for (const sign of ['engine', 'engine/cluster']) {
    await oneOfManyWithin(2_000, async () => {
      const stop = new AbortController()
      const { dataDir } = folder
      const starting = startEngine({ dataDir, exclusive: true, signal: stop.signal })
      const ended = assert.rejects(starting, /stop now/)
      await eventually(() => assert(fs.existsSync(folder.path(sign))))
      const abortedAtMs = performance.now()
      stop.abort(new Error('stop now'))
      await ended
      assert(!fs.existsSync(folder.path('engine/cluster/postmaster.pid')))
      return performance.now() - abortedAtMs
    })
  }
})

test('a start that waits for another one can be aborted', async () => {
  await using folder = new EngineFolder()
  fs.mkdirSync(folder.dataDir, { mode: 0o711 })
  using lock = await acquireFileLock(folder.path('engine.lock'), { waitMsMax: 0 })
  assert(lock)
  const { dataDir } = folder
  const signal = AbortSignal.timeout(100)
  const starting = startEngine({ dataDir, exclusive: true, signal })
  await within(2_000, assert.rejects(starting, { name: 'TimeoutError' }))
})

test('exiting without a usable lock keeps the engine running for other processes', async () => {
  await using folder = EngineFolder.prepared()
  const events: unknown[] = []
  const note = (fields: Record<string, unknown>) => events.push(fields['event'])
  const { dataDir } = folder
  const settings = SMALL_ENGINE
  const logger = { info: note, warn: note }
  await using command = await startEngine({ dataDir, exclusive: false, settings, logger })
  const engine = await service(dataDir)
  fs.rmSync(folder.path('engine.lock'))
  fs.mkdirSync(folder.path('engine.lock'))
  const pid = folder.postmasterPid()
  await engine[Symbol.asyncDispose]()
  assert.deepEqual(await query(command.connection, 'select 1 as one'), [{ one: 1 }])
  await command[Symbol.asyncDispose]()
  assert.equal(isRunning(pid), false)
  assert.deepEqual(events, ['engine.started', 'engine.unlocked', 'engine.stopped'])
})

test('a service whose data folder was replaced stops only its own engine', async () => {
  await using folder = EngineFolder.prepared()
  const { dataDir } = folder
  const engine = await service(dataDir)
  const pid = folder.postmasterPid()
  fs.renameSync(dataDir, `${dataDir}-moved`)
  await using next = await service(dataDir)
  await engine[Symbol.asyncDispose]()
  assert.equal(isRunning(pid), false)
  assert.deepEqual(await query(next.connection, 'select 1 as one'), [{ one: 1 }])
})
