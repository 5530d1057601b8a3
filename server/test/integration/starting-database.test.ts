import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { after, test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import type { EngineConnection } from '../../src/platform/engine/presence.ts'
import { sqlStateOf } from '../../src/platform/pg/pg-error.ts'
import { AnnalsProcess, runAnnals } from '../harness/app/annals-process.ts'
import { EngineFolder, query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually, oneOfManyWithin } from '../harness/timing/eventually.ts'
import { serverListUrl } from '../harness/database/standby.ts'
import { SECRET_KEY } from '../harness/app/start-app.ts'
import { urlOf } from '../harness/database/template-db.ts'

const STOP_MS_MAX = 2_000

const folder = EngineFolder.prepared()
after(() => folder[Symbol.asyncDispose]())
const start = (settings: Record<string, string> = {}) =>
  startEngine({
    dataDir: folder.dataDir,
    exclusive: false,
    settings: { ...SMALL_ENGINE, ...settings },
  })
const connection = await readConnection()

async function readConnection(): Promise<EngineConnection> {
  await using engine = await start()
  return engine.connection
}

const envOf = (databaseUrl: string): Record<string, string> => ({
  ANNALS_DATABASE_URL: databaseUrl,
  ANNALS_SECRET_KEY: SECRET_KEY,
  ANNALS_PORT: '0',
})

const serve = (databaseUrl: string): AnnalsProcess =>
  new AnnalsProcess(['serve', '--role', 'worker'], envOf(databaseUrl))

async function assertStartsOnce(service: AnnalsProcess): Promise<void> {
  await service.printed(/"event":"service\.started"/)
  service.signal('SIGTERM')
  const { code, stdout } = await service.exited
  assert.equal(code, 0)
  const waits = stdout.match(/"event":"database\.\w+"/g)
  assert.deepEqual(waits, ['"event":"database.waiting"', '"event":"database.connected"'])
}

test('serve waits for a PostgreSQL that is not running yet, and starts when it is', async () => {
  await using service = serve(urlOf(connection))
  await service.printed(/"event":"database\.waiting","reason":"connect ENOENT/)
  await using _engine = await start()
  await assertStartsOnce(service)
})

test('serve waits while PostgreSQL responds that it is starting up', async () => {
  const signalFile = (name: string) => folder.path('engine/cluster', name)
  // Such a standby refuses all connections until it is promoted.
  writeFileSync(signalFile('standby.signal'), '')
  const starting = start({ hot_standby: 'off' })
  await eventually(async () =>
    assert.rejects(query(connection, 'select'), (error) => sqlStateOf(error) === '57P03'),
  )
  await using service = serve(urlOf(connection))
  await service.printed(/"event":"database\.waiting","reason":"the database system is /)
  writeFileSync(signalFile('promote'), '')
  process.kill(folder.postmasterPid(), 'SIGUSR1')
  await using _engine = await starting
  await assertStartsOnce(service)
})

test('migrate waits for a server of a list, although another one is down', async () => {
  await using sockets = new AsyncDisposableStack()
  const down = createServer((socket) => void socket.destroy())
  sockets.defer(() => void down.close())
  down.listen(0, '127.0.0.1')
  await once(down, 'listening')
  const address = down.address()
  assert(typeof address === 'object' && address !== null)
  const list = serverListUrl({ ...connection, host: '127.0.0.1', port: address.port }, connection)
  const command = runAnnals(['migrate'], envOf(list))
  // The second attempt, unless the command ends after the first.
  await once(down, 'connection')
  await Promise.race([once(down, 'connection'), command])
  await using _engine = await start()
  const { code, stdout, stderr } = await command
  assert.deepEqual([code, stdout], [0, 'The database is up to date.\n'])
  assert.match(stderr, /"event":"database\.waiting"[^]*"event":"database\.connected"/)
})

test('a stop signal ends the wait within two seconds, with exit code 0', async () => {
  await oneOfManyWithin(STOP_MS_MAX, async () => {
    await using service = serve('postgres://a:hunter2@127.0.0.1:1/x')
    await service.printed(/"event":"database\.waiting"/)
    const startedAtMs = performance.now()
    service.signal('SIGTERM')
    const { code, stdout, stderr } = await service.exited
    assert.deepEqual([code, stderr], [0, ''])
    assert(!stdout.includes('hunter2'), stdout)
    return performance.now() - startedAtMs
  })
})

test('serve does not wait if the login is refused or the database does not exist', async () => {
  await using _engine = await start()
  for (const [wrong, message] of [
    [{ password: 'wrong' }, /^annals: The database refused the login: /],
    [{ database: 'none' }, /^annals: The database returned an error: .*"none" does not exist/],
  ] as const) {
    const { code, stdout, stderr } = await runAnnals(
      ['serve', '--role', 'worker'],
      envOf(urlOf({ ...connection, ...wrong })),
    )
    assert.equal(code, 1)
    assert.match(stderr, message)
    assert(!stdout.includes('database.waiting'), stdout)
  }
})
