import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readBackupManifest } from '../../src/outlet/backup/manifest.ts'
import { AnnalsProcess, runAnnals } from '../harness/app/annals-process.ts'
import { call, startTestApp } from '../harness/app/start-app.ts'
import { commandEnv } from '../harness/app/command-env.ts'
import { backUp, createRestoreTarget, lockTable, readAllRows } from '../harness/database/backup.ts'
import { EngineFolder } from '../harness/database/engine.ts'
import { createSigner } from '../harness/proof/proof.ts'
import { eventually } from '../harness/timing/eventually.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const EVENT_BYTES = 200_000
const EVENTS = 50

/** More than one backup file holds, and too random to be compressed much. */
async function sendLarge(key: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    const metadata = { text: randomBytes(EVENT_BYTES / 2).toString('hex') }
    const body = { category: 'large', action: 'sent', metadata }
    const { status, text } = await annals.call('POST', '/v1/events', { key, body })
    assert.equal(status, 201, text)
  }
}

test('kill -9 leaves the last backup valid, and the next one continues', async () => {
  const { workspaces } = await annals.createCompany({ workspaces: ['A', 'B', 'C', 'D'] })
  const [first] = workspaces
  assert(first)
  await sendLarge(first.workspaceKey, 1)
  // Otherwise, the node lists its keys while the test runs, as soon as events are unsigned for 20 seconds.
  await createSigner(annals).listKeys()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-backup-'))
  const { path } = folder
  const eventFiles = () =>
    readdirSync(join(path, 'events'))
      .filter((name) => name.endsWith('.zst'))
      .map((name) => ({ name, ino: statSync(join(path, 'events', name)).ino }))
  const { createdAt } = await backUp(annals, path)
  for (const { workspaceKey } of workspaces) await sendLarge(workspaceKey, EVENTS)

  const lock = await lockTable(annals.database, 'api_key')
  const killed = new AnnalsProcess(['backup', '--to', path], commandEnv(annals))
  await lock.waiting()
  killed.signal('SIGKILL')
  await killed.exited
  await lock[Symbol.asyncDispose]()
  const copied = eventFiles()
  assert(copied.length >= 3, JSON.stringify(copied))

  assert.equal((await readBackupManifest(path))?.createdAt, createdAt)
  await using old = await createRestoreTarget()
  const restoredOld = await old.restore(path)
  assert.equal(restoredOld.code, 0, restoredOld.stdout + restoredOld.stderr)
  assert.match(restoredOld.stdout, /\nok: 1 events in 5 workspaces/)

  // The files that were complete are used as they are, and only one event is left to copy.
  await sendLarge(first.workspaceKey, 1)
  await backUp(annals, path)
  const files = eventFiles()
  assert.equal(files.length, copied.length + 1)
  assert.deepEqual(
    copied.filter(({ name, ino }) => files.find((file) => file.name === name)?.ino !== ino),
    [],
  )
  await using target = await createRestoreTarget()
  const { code, stdout, stderr } = await target.restore(path)
  assert.equal(code, 0, stdout + stderr)
  assert.deepEqual(await readAllRows(target.database), await readAllRows(annals.database))
})

test('a running embedded engine is backed up with its key, and restored into a new data folder', async () => {
  await using source = EngineFolder.prepared()
  await using target = new EngineFolder()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-backup-'))
  const envOf = ({ dataDir }: EngineFolder) => ({
    ANNALS_DATA_DIR: dataDir,
    ANNALS_PORT: '0',
    ANNALS_CHECKPOINT_SECONDS: '1',
  })
  const serve = async (data: EngineFolder) => {
    const service = new AnnalsProcess(['serve'], envOf(data))
    const [, url = ''] = await service.printed(/Annals is running at (http:\S+)/)
    return { service, url }
  }
  const body = { category: 'c', action: 'a' }
  let key = ''
  {
    const { service, url } = await serve(source)
    await using _stopped = service
    const created = await runAnnals(['bootstrap', '--json'], envOf(source))
    key = JSON.parse(created.stdout).workspaceKey
    assert.equal((await call(`${url}/v1/events`, 'POST', { key, body })).status, 201)
    // Signed, so that the restored signer has something to continue.
    await eventually(() => assert(readdirSync(source.path('archive/signer')).length >= 2))
    const command = ['backup', '--to', folder.path, '--with-secret-key']
    const { code, stdout, stderr } = await runAnnals(command, envOf(source))
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^Backed up \d+ events of .*\nThe secret key \(fingerprint [0-9a-f]{16}\) is included/,
    )
  }
  const { code, stdout, stderr } = await runAnnals(
    ['restore', '--from', folder.path],
    envOf(target),
  )
  assert.equal(code, 0, stdout + stderr)
  const { service, url } = await serve(target)
  await using _stopped = service
  assert.equal((await call(`${url}/v1/events`, 'POST', { key, body })).status, 201)
  const verified = await runAnnals(['verify'], envOf(target))
  assert.equal(verified.code, 0, verified.stdout)
})
