import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SERVE_ROLES, type ServeRole } from '../../src/serve-role.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { EngineFolder, isRunning } from '../harness/database/engine.ts'
import { SmallDisk } from '../harness/app/small-disk.ts'

const DISK_BYTES = 192 * 1_024 * 1_024

async function start(
  role: ServeRole,
  dataDir: string,
  within: readonly string[] = [],
): Promise<AnnalsProcess> {
  const env = { ANNALS_DATA_DIR: dataDir, ANNALS_PORT: '0' }
  const annals = new AnnalsProcess(['serve', '--role', role], env, within)
  await annals.printed(/"event":"service\.started"/)
  return annals
}

/** Expects exit code 0, no error sentence and no PostgreSQL process. Returns the log. */
async function stop(annals: AnnalsProcess, postmasterPid: number): Promise<string> {
  assert.equal(isRunning(postmasterPid), true)
  annals.signal('SIGTERM')
  const { code, stdout, stderr } = await annals.exited
  const wasLeft = isRunning(postmasterPid)
  // A test that fails leaves no process behind.
  if (wasLeft) process.kill(postmasterPid, 'SIGQUIT')
  assert.deepEqual({ code, stderr, wasLeft }, { code: 0, stderr: '', wasLeft: false }, stdout)
  return stdout
}

test('on a full disk, a node of any role stops PostgreSQL and exits with code 0', async (t) => {
  await using disk = await SmallDisk.make(DISK_BYTES)
  if (disk.code !== 'ENOSPC') return t.skip('mounting a file system is not permitted here')
  const dataDir = join(disk.folder, 'data')
  const filler = join(disk.folder, 'filler')
  const run = (command: string) =>
    spawnSync(disk.within[0] ?? '', [...disk.within.slice(1), 'sh', '-c', command])
  for (const role of SERVE_ROLES) {
    await using annals = await start(role, dataDir, disk.within)
    run(`dd if=/dev/zero of=${filler} bs=4k`)
    const pidFile = join(disk.outside, 'data/engine/cluster/postmaster.pid')
    const log = await stop(annals, Number.parseInt(readFileSync(pidFile, 'utf8')))
    assert.match(log, /"event":"engine\.stopped"/)
    run(`rm ${filler}`)
  }
})

test('a node whose lock file or data folder is gone stops PostgreSQL and exits with code 0', async () => {
  await using folder = EngineFolder.prepared()
  const lock = folder.path('engine.lock')
  const elsewhere = `${folder.dataDir}-moved`

  {
    await using annals = await start('worker', folder.dataDir)
    rmSync(lock)
    mkdirSync(lock)
    const log = await stop(annals, folder.postmasterPid())
    assert.match(log, /"event":"engine\.unlocked".*"event":"engine\.stopped"/s)
    rmSync(lock, { recursive: true })
  }
  {
    await using annals = await start('worker', folder.dataDir)
    const pid = folder.postmasterPid()
    renameSync(folder.dataDir, elsewhere)
    assert.match(await stop(annals, pid), /"event":"engine\.stopped"/)
    renameSync(elsewhere, folder.dataDir)
  }
})
