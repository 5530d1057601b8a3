import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { EngineFolder, isRunning, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'

const folder = EngineFolder.prepared()
after(() => folder[Symbol.asyncDispose]())
const { dataDir } = folder
const env = { ANNALS_DATA_DIR: dataDir }

for (const [signal, exitCode] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  test(`a working command that gets ${signal} stops its engine and exits with ${exitCode}`, async () => {
    await using engine = await startEngine({ dataDir, exclusive: false, settings: SMALL_ENGINE })
    const pid = folder.postmasterPid()
    const blocker = new Client(engine.connection)
    await using stack = new AsyncDisposableStack()
    stack.defer(() => blocker.end())
    blocker.on('error', () => {})
    await blocker.connect()
    await blocker.query('begin; lock table workspace')
    await using command = new AnnalsProcess(['verify'], env)
    await eventually(async () => {
      const { rowCount } = await blocker.query('select from pg_locks where not granted')
      assert.equal(rowCount, 1)
    })
    // From now on, the command is the engine's only user.
    await engine[Symbol.asyncDispose]()
    assert.equal(isRunning(pid), true)
    command.signal(signal)
    const { code, stdout, stderr } = await command.exited
    await eventually(() => assert.equal(isRunning(pid), false))
    assert.deepEqual([code, stdout, stderr], [exitCode, '', ''])
  })
}

test('a command that gets SIGTERM while the engine starts leaves no engine running', async () => {
  const pidFile = folder.path('engine/cluster/postmaster.pid')
  // Repeated if the command has ended before the signal.
  await eventually(async () => {
    await using command = new AnnalsProcess(['migrate'], env)
    await eventually(() => assert(existsSync(pidFile)))
    command.signal('SIGTERM')
    const { code, stdout } = await command.exited
    assert.equal(existsSync(pidFile), false)
    assert.deepEqual([code, stdout], [143, ''])
  })
})
