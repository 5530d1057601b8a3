import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, lstatSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { AnnalsProcess, runAnnals } from '../harness/app/annals-process.ts'
import { assertOnly, diagnose, problemsOf } from '../harness/app/doctor.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'
import { SmallDisk } from '../harness/app/small-disk.ts'
import { EngineFolder } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
/** Port 1 refuses connections. */
const NO_DATABASE = {
  ANNALS_DATABASE_URL: 'postgres://annals:hunter2@127.0.0.1:1/annals',
  ANNALS_SECRET_KEY: KEY,
  ANNALS_PORT: '0',
}

/** Every entry of a folder with its mode and times, and the content of files. */
function contentOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => {
      const path = join(folder, name)
      const found = lstatSync(path)
      const content = found.isFile() ? hash('sha256', readFileSync(path)) : ''
      return [name, found.mode, found.uid, found.mtimeMs, content].join(' ')
    })
}

async function listenOnFreePort(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return String(address.port)
}

test('an invalid configuration is the only failure, with every problem, and nothing else runs', async () => {
  const found = await diagnose({ ANNALS_PROT: '80', ANNALS_LOG_LEVEL: 'loud' })
  assertOnly(found, 'failed', 'configuration', /ANNALS_LOG_LEVEL must be[^]*ANNALS_PROT is not/)
  const others = [...found.checks.values()].filter(({ name }) => name !== 'configuration')
  assert(others.length > 15)
  assert(others.every(({ status }) => status === 'skipped'))
})

test('a stopped database fails its check, and the checks that need it are skipped', async () => {
  const found = await diagnose(NO_DATABASE)
  assertOnly(found, 'failed', 'database', /Can't reach the database/)
  assert.equal(found.checks.get('clock')?.status, 'skipped')
  assert(!found.text.includes('hunter2'))
})

test('a database that never responds ends in a failure instead of a hang', async () => {
  await using silent = createServer((socket) => socket.resume())
  const port = await listenOnFreePort(silent)
  const url = `postgres://annals:hunter2@127.0.0.1:${port}/annals`
  assertOnly(
    await diagnose({ ...NO_DATABASE, ANNALS_DATABASE_URL: url }),
    'failed',
    'database',
    /Can't reach the database|took more than/,
  )
})

test('a stopped installation is checked as far as possible, and nothing in it changes', async () => {
  await using folder = EngineFolder.prepared()
  writeFileSync(folder.path('secret.key'), KEY, { mode: 0o600 })
  const before = contentOf(folder.dataDir)
  const found = await diagnose({ ANNALS_DATA_DIR: folder.dataDir, ANNALS_PORT: '0' })
  assertOnly(found, 'warning', 'database', /not running/)
  assert.equal(found.checks.get('data folder')?.status, 'ok')
  assert.deepEqual(contentOf(folder.dataDir), before)
  const text = (await runAnnals(['doctor'], { ANNALS_DATA_DIR: folder.dataDir })).stdout
  assert.match(text, /^skipped +12 checks +This needs the database\. Not checked: migrations, /m)
  assert.match(text, /^warning +database .*\n +→ Start the service/m)
})

test('beside a running service, every check is ok, and the service keeps running', async () => {
  await using folder = EngineFolder.prepared()
  const probe = createServer()
  const port = await listenOnFreePort(probe)
  await probe[Symbol.asyncDispose]()
  const env = { ANNALS_DATA_DIR: folder.dataDir, ANNALS_PORT: port }
  await using service = new AnnalsProcess(['serve'], env)
  const [, url = ''] = await service.printed(/Annals is running at (http:\S+)/)
  const found = await diagnose(env)
  assert.deepEqual(problemsOf(found), [], found.text)
  assert.match(found.checks.get('ports')?.message ?? '', /A service responds/)
  assert.match(found.checks.get('nodes')?.message ?? '', /1 with the role all/)
  assert.equal((await fetch(`${url}/ready`)).status, 200)
  writeFileSync(folder.path('secret.key'), 'not a key')
  const damaged = await diagnose(env)
  assert.deepEqual(problemsOf(damaged), ['failed secret key file', 'failed secret key'])
  rmSync(folder.path('secret.key'))
  const lost = await diagnose(env)
  assertOnly(lost, 'failed', 'secret key', /The secret key .* is missing or damaged/)
})

test('an empty data folder is a warning, and stays missing', async () => {
  await using folder = new EngineFolder()
  const found = await diagnose({ ANNALS_DATA_DIR: folder.dataDir, ANNALS_PORT: '0' })
  assert.deepEqual(problemsOf(found), ['warning data folder', 'warning database'])
  assert.equal(lstatSync(folder.dataDir, { throwIfNoEntry: false }), undefined)
})

test('a data folder that a start would refuse is named, with the sentence of the start', async () => {
  await using folder = EngineFolder.prepared()
  const env = { ANNALS_DATA_DIR: folder.dataDir, ANNALS_PORT: '0' }
  writeFileSync(folder.path('secret.key'), 'not a key', { mode: 0o600 })
  chmodSync(folder.path('engine.password'), 0o644)
  const damaged = await diagnose(env)
  assert.match(damaged.checks.get('secret key file')?.message ?? '', /is not a secret key/)
  assert.match(damaged.checks.get('data folder')?.message ?? '', /Other users can read .*engine/)
  writeFileSync(folder.path('engine/cluster/PG_VERSION'), '17\n')
  const old = await diagnose(env)
  assert.match(old.checks.get('data folder')?.message ?? '', /was created by PostgreSQL 17/)
  for (const name of ['disk', 'secret key file']) {
    assert.match(old.checks.get(name)?.message ?? '', /^This depends on the data folder/)
  }
  rmSync(folder.path('engine'), { recursive: true })
  const lost = await diagnose(env)
  assert.match(lost.checks.get('data folder')?.message ?? '', /is missing, and no new one/)
})

test('a disk with too little space fails before the service refuses events', async () => {
  await using disk = await SmallDisk.make(16 * 1_024 ** 2)
  // Without permission to mount, there is no small disk to check.
  if (disk.code !== 'ENOSPC') return
  const env = { ...NO_DATABASE, ANNALS_ARCHIVE_URL: `file://${disk.folder}` }
  const roomy = await diagnose(env, { within: disk.within })
  assert.equal(roomy.checks.get('disk')?.status, 'ok')
  writeFileSync(join(disk.outside, 'filler'), Buffer.alloc(13.5 * 1_024 ** 2))
  const near = await diagnose(env, { within: disk.within })
  assert.equal(near.checks.get('disk')?.status, 'warning')
  writeFileSync(join(disk.outside, 'more'), Buffer.alloc(1.5 * 1_024 ** 2))
  const low = await diagnose(env, { within: disk.within })
  assert.match(low.checks.get('disk')?.message ?? '', /^Only .* GB are free on the disk of /)
  assert.equal(low.checks.get('disk')?.status, 'failed')
})

test('a port that another program uses fails, and so does one that never responds', async () => {
  await using other = createServer((socket) => socket.resume().end('SSH-2.0-other\r\n'))
  const port = await listenOnFreePort(other)
  const found = await diagnose({ ...NO_DATABASE, ANNALS_PORT: port })
  assert.match(found.checks.get('ports')?.message ?? '', /A program listens on .*doesn't respond/)
  await other[Symbol.asyncDispose]()
  await using metrics = createServer((socket) => socket.resume())
  const metricsPort = await listenOnFreePort(metrics)
  const free = { ...NO_DATABASE, ANNALS_PORT: port, ANNALS_METRICS_PORT: metricsPort }
  const second = await diagnose(free)
  assert.match(second.checks.get('ports')?.message ?? '', /already in use.*ANNALS_METRICS_PORT/)
})

test('beside a running worker, the ports are ok', async () => {
  await using service = await startTestApp({ role: 'api' })
  const probe = createServer()
  const metricsPort = await listenOnFreePort(probe)
  await probe[Symbol.asyncDispose]()
  const freeProbe = createServer()
  const port = await listenOnFreePort(freeProbe)
  await freeProbe[Symbol.asyncDispose]()
  const env = {
    ANNALS_DATABASE_URL: service.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_PORT: port,
    ANNALS_METRICS_PORT: metricsPort,
  }
  await using _worker = new AnnalsProcess(['serve', '--role', 'worker'], env)
  const at = `127.0.0.1:${metricsPort}`
  await eventually(async () => assert((await fetch(`http://${at}/metrics`)).ok))
  const { checks, text } = await diagnose(env)
  const message = `A worker responds on ${at}.`
  assert.deepEqual(
    [checks.get('ports')?.status, checks.get('ports')?.message],
    ['ok', message],
    text,
  )
})

test('a port whose program redirects or never stops responding is not a service', async () => {
  await using other = createHttpServer((request, response) => {
    if (request.url === '/ready') response.writeHead(307, { location: '/service' }).end()
    else response.end('{"ok":true}')
  })
  const port = await listenOnFreePort(other)
  const redirected = await diagnose({ ...NO_DATABASE, ANNALS_PORT: port })
  assert.match(redirected.checks.get('ports')?.message ?? '', /doesn't respond like a service/)
  await using endless = createHttpServer((_, response) => {
    const timer = setInterval(() => response.write('x'.repeat(2_000)), 10)
    response.once('close', () => clearInterval(timer))
  })
  const endlessPort = await listenOnFreePort(endless)
  const flooded = await diagnose({ ...NO_DATABASE, ANNALS_PORT: endlessPort })
  assert.match(flooded.checks.get('ports')?.message ?? '', /doesn't respond like a service/)
})

test('addresses that make callers or links look wrong are warnings', async () => {
  const message = async (env: Record<string, string>) =>
    (await diagnose({ ...NO_DATABASE, ...env })).checks.get('addresses')
  const [proxied, plain, mailed, good] = await Promise.all([
    message({ ANNALS_PUBLIC_URL: 'https://audit.example' }),
    message({ ANNALS_PUBLIC_URL: 'http://audit.example' }),
    message({ ANNALS_SMTP_URL: 'smtp://mailer:p-smtp@mail.example' }),
    message({ ANNALS_PUBLIC_URL: 'https://audit.example', ANNALS_TRUSTED_PROXIES: '10.0.0.0/8' }),
  ])
  assert.match(proxied?.message ?? '', /ANNALS_TRUSTED_PROXIES is empty/)
  assert.match(plain?.message ?? '', /without TLS/)
  assert.match(mailed?.message ?? '', /ANNALS_PUBLIC_URL is not set/)
  assert.equal(good?.status, 'ok')
})

test('never prints a password or a key, whatever fails', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-doctor-'))
  const env = {
    ANNALS_DATABASE_URL: 'postgres://annals:p-db@127.0.0.1:1,127.0.0.1:2/x?password=p-query',
    ANNALS_SECRET_KEY: KEY,
    ANNALS_SIGNING_KEY: Buffer.alloc(32, 8).toString('base64'),
    ANNALS_SMTP_URL: 'smtp://mailer:p-smtp@mail.example',
    ANNALS_PUBLIC_URL: 'http://user:p-public@audit.example',
    ANNALS_ARCHIVE_URL: `file://${folder.path}`,
    ANNALS_PORT: '0',
  }
  for (const text of [
    (await diagnose(env)).text,
    (await diagnose({ ...env, ANNALS_DATABASE_URL: 'postgres://a:p-db@[/x' })).text,
    (await diagnose({ ...env, ANNALS_SECRET_KEY: 'p-key' })).text,
  ]) {
    for (const secret of ['p-db', 'p-query', 'p-smtp', 'p-public', 'p-key', KEY.slice(0, 8)]) {
      assert(!text.includes(secret), `${secret}: ${text}`)
    }
  }
})
