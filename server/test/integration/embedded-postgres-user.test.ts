import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { test } from 'node:test'

import { EngineError, startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { dataFolderHash, engineFiles } from '../../src/platform/engine/files.ts'
import {
  EngineFolder,
  EngineHolder,
  HOLDER,
  IS_ROOT,
  parseRefusal,
} from '../harness/database/engine.ts'
import { query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'

const service = (dataDir: string, logger = new EngineLog()) =>
  startEngine({ dataDir, exclusive: true, settings: SMALL_ENGINE, logger })

/** Collects the startup messages. */
class EngineLog {
  text = ''

  info({ uid }: Record<string, unknown>, message: string): void {
    this.text += `info: uid ${String(uid)}: ${message}\n`
  }

  warn({ uid }: Record<string, unknown>, message: string): void {
    this.text += `warn: uid ${String(uid)}: ${message}\n`
  }
}

/** Checks that an id belongs to no other user: neither root nor a user with a name. */
function assertOwnUser(id: number): void {
  assert.notEqual(id, 0)
  assert.notEqual(id, NOBODY.uid)
  const lists = ['/etc/passwd', '/etc/group'].map((path) => fs.readFileSync(path, 'utf8'))
  assert(lists.every((list) => !list.includes(`:${id}:`)))
}

const NOBODY = {
  uid: Number(execFileSync('id', ['-u', 'nobody'])),
  gid: Number(execFileSync('id', ['-g', 'nobody'])),
}

const mayUnshare =
  IS_ROOT && spawnSync('unshare', ['--mount', '--propagation', 'private', 'true']).status === 0
const needsRoot = IS_ROOT ? false : 'only root can become another user'
const needsNamespace = mayUnshare ? false : 'needs root and a mount namespace'
const needsOpenCheckout = canNobodyRead()
  ? false
  : 'needs root, and a checkout that nobody can read'

test(
  'as root, runs the engine as a dedicated user that owns only its own folder',
  {
    skip: needsRoot,
  },
  async () => {
    await using folder = new EngineFolder()
    const log = new EngineLog()
    await using engine = await service(folder.dataDir, log)
    assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
    const { uid, gid } = fs.statSync(`/proc/${folder.postmasterPid()}`)
    assertOwnUser(uid)
    assertOwnUser(gid)
    assert.match(log.text, new RegExp(`^info: uid ${uid}: .* runs as a dedicated user$`, 'm'))
    const entries = fs.readdirSync(folder.path('engine'), { recursive: true, encoding: 'utf8' })
    assert(entries.includes('cluster/PG_VERSION'))
    for (const entry of ['', ...entries]) {
      assert.equal(fs.lstatSync(folder.path('engine', entry)).uid, uid, entry)
    }
    assert.equal(fs.statSync(folder.path('engine')).mode & 0o777, 0o700)
    for (const name of ['', 'engine.password', 'engine.lock', 'engine.log']) {
      assert.equal(fs.statSync(folder.path(name)).uid, 0, name)
    }
  },
)

test(
  'as root, runs a database that belongs to nobody as nobody, and warns about it',
  {
    skip: needsRoot,
  },
  async () => {
    await using folder = new EngineFolder()
    await (await service(folder.dataDir))[Symbol.asyncDispose]()
    execFileSync('chown', ['-R', `${NOBODY.uid}:${NOBODY.gid}`, folder.path('engine')])
    const log = new EngineLog()
    await using engine = await service(folder.dataDir, log)
    assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
    assert.equal(fs.statSync(`/proc/${folder.postmasterPid()}`).uid, NOBODY.uid)
    assert.match(
      log.text,
      /^warn: uid \d+: .* runs as nobody: other programs .* can read and change/m,
    )
  },
)

test(
  'as root, runs the engine as the owner of the data folder, even one without a name',
  {
    skip: needsRoot,
  },
  async () => {
    await using folder = new EngineFolder()
    folder.giveTo(61_000, 61_001)
    await using engine = await service(folder.dataDir)
    assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
    const { uid, gid } = fs.statSync(`/proc/${folder.postmasterPid()}`)
    assert.deepEqual([uid, gid], [61_000, 61_001])
  },
)

test(
  'as root, a private home works through a mount namespace, or is rejected',
  {
    skip: needsRoot,
  },
  async () => {
    await using folder = new EngineFolder({ mode: 0o700 })
    if (!mayUnshare) {
      await assert.rejects(service(folder.dataDir), /Set ANNALS_DATA_DIR to a folder that user can/)
      return
    }
    const engine = await service(folder.dataDir)
    const pid = folder.postmasterPid()
    assertOwnUser(fs.statSync(`/proc/${pid}`).uid)
    assert.deepEqual(findOutside(folder.dataDir), [])
    const namespace = fs.readlinkSync(`/proc/${pid}/ns/mnt`)
    assert.notEqual(namespace, fs.readlinkSync('/proc/self/ns/mnt'))
    await query(engine.connection, 'create table kept as select 1 as one')
    process.kill(pid, 'SIGKILL')
    const rows = await eventually(() => query(engine.connection, 'select one from kept'))
    assert.deepEqual(rows, [{ one: 1 }])

    const cwd = `/proc/${folder.postmasterPid()}/cwd`
    assert.equal(fs.statSync(cwd).ino, fs.statSync(folder.path('engine/cluster')).ino)
    await engine[Symbol.asyncDispose]()
    assert.equal(fs.existsSync(folder.path('engine/cluster/postmaster.pid')), false)
    assert.deepEqual(findOutside(folder.dataDir), [])
  },
)

test('a long path in a private home works', { skip: needsNamespace }, async () => {
  await using folder = new EngineFolder({ mode: 0o700, name: 'long-'.repeat(30) })
  await using engine = await service(folder.dataDir)
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
})

test(
  'an ordinary user has their own engine, and root can attach to it',
  {
    skip: needsOpenCheckout,
  },
  async () => {
    await using folder = new EngineFolder()
    folder.giveTo(NOBODY.uid, NOBODY.gid)
    {
      // First as root, in a folder of the user: the user must not be locked out afterwards.
      await using engine = await service(folder.dataDir)
      assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
    }
    await using holder = new EngineHolder(folder.dataDir, 'service', NOBODY)
    await query(await holder.ready(), 'create table kept as select 1 as one')
    for (const name of fs.readdirSync(folder.dataDir)) {
      assert.equal(fs.statSync(folder.path(name)).uid, NOBODY.uid, name)
    }
    await using visit = await startEngine({ dataDir: folder.dataDir, exclusive: false })
    assert.deepEqual(await query(visit.connection, 'select one from kept'), [{ one: 1 }])
  },
)

test(
  'an ordinary user with a stale pid of their own process can start',
  {
    skip: needsOpenCheckout,
  },
  async () => {
    await using folder = new EngineFolder()
    folder.giveTo(NOBODY.uid, NOBODY.gid)
    await using other = new EngineFolder()
    other.giveTo(NOBODY.uid, NOBODY.gid)
    await using otherEngine = new EngineHolder(other.dataDir, 'service', NOBODY)
    await otherEngine.ready()
    {
      await using first = new EngineHolder(folder.dataDir, 'service', NOBODY)
      await first.ready()
    }
    // PostgreSQL itself would refuse: the pid is alive, and its user may signal it.
    fs.writeFileSync(folder.path('engine/cluster/postmaster.pid'), `${otherEngine.pid}\n`)
    fs.writeFileSync(folder.path('engine/run/.s.PGSQL.5432.lock'), `${otherEngine.pid}\n`)
    await using second = new EngineHolder(folder.dataDir, 'service', NOBODY)
    await second.ready()
  },
)

test(
  "rejects another user's data folder with a clear message",
  {
    skip: needsOpenCheckout,
  },
  async () => {
    await using folder = new EngineFolder()
    await using engine = await service(folder.dataDir)
    await using holder = new EngineHolder(folder.dataDir, 'command', NOBODY)
    assert.match(await holder.refusal(), /can't write to .*\. Set ANNALS_DATA_DIR/)
    assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
  },
)

test('a copy of the data folder made by root is usable', { skip: needsRoot }, async () => {
  await using folder = new EngineFolder()
  await (await service(folder.dataDir))[Symbol.asyncDispose]()
  execFileSync('chown', ['-R', '0:0', folder.dataDir])
  await using engine = await service(folder.dataDir)
  assertOwnUser(fs.statSync(`/proc/${folder.postmasterPid()}`).uid)
  assert.deepEqual(await query(engine.connection, 'select 1 as one'), [{ one: 1 }])
})

test(
  'reports a full disk with a clear message, and starts once there is space',
  {
    skip: needsNamespace,
  },
  async () => {
    await using folder = new EngineFolder()
    fs.mkdirSync(folder.dataDir)
    const script = [
      'mount -t tmpfs -o size=24m,mode=711 tmpfs "$1"',
      '"$2" "$3" "$1" service < /dev/null',
      'ls "$1/engine"',
      'mount -o remount,size=400m "$1"',
      '"$2" "$3" "$1" service < /dev/null',
    ].join(' && ')
    const args = ['--mount', 'sh', '-c', script, 'sh', folder.dataDir, process.execPath, HOLDER]
    const output = execFileSync('unshare', args, { encoding: 'utf8', cwd: '/' })
    const [first = '', log, run, last = ''] = output.trim().split('\n')
    assert.match(parseRefusal(JSON.parse(first)), /^The disk of .* is full\. Free some space/)
    assert.deepEqual([log, run], ['log', 'run'])
    assert.match(last, /"connection"/)
  },
)

test('rejects a file in place of the data folder with a clear message', async () => {
  await using folder = new EngineFolder()
  fs.writeFileSync(folder.dataDir, '')
  await assert.rejects(service(folder.dataDir), (error) => {
    assert(error instanceof EngineError)
    assert.match(error.message, /is a file and not a folder/)
    return true
  })
})

test(
  'as root without a mount namespace, rejects a private home with a clear message',
  {
    skip: needsNamespace,
  },
  async () => {
    await using folder = new EngineFolder({ mode: 0o700 })
    const args = [
      '--bounding-set',
      '-sys_admin',
      process.execPath,
      HOLDER,
      folder.dataDir,
      'service',
    ]
    const { stdout } = spawnSync('setpriv', args, { encoding: 'utf8', input: '' })
    const refusal = parseRefusal(JSON.parse(stdout))
    assert.match(
      refusal,
      /does not run as root, .* Set ANNALS_DATA_DIR to a folder that user can enter/,
    )
    assert.match(refusal, /or set ANNALS_DATABASE_URL/)
    assert.equal(fs.existsSync(folder.path('engine/cluster')), false)
    assert.deepEqual(findOutside(folder.dataDir), [])
  },
)

/**
 * Everything that the engine of this data folder has created elsewhere. Its name contains the hash
 * of the path.
 */
function findOutside(dataDir: string): string[] {
  const names = ['/run', tmpdir()].flatMap((root) => fs.readdirSync(root))
  return names.filter((name) => name.includes(dataFolderHash(engineFiles(dataDir))))
}

function canNobodyRead(): boolean {
  if (!IS_ROOT) return false
  const script = `require('node:fs').readFileSync(${JSON.stringify(HOLDER)})`
  return spawnSync(process.execPath, ['-e', script], { ...NOBODY, cwd: '/' }).status === 0
}
