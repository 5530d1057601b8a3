import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fingerprintOf, parseSecretKey } from '../../src/platform/secret/secret-key.ts'
import { commandEnv } from '../harness/app/command-env.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startBackedUpApp } from '../harness/database/backed-up-app.ts'
import { createRestoreTarget } from '../harness/database/backup.ts'
import { sendEvents } from '../harness/proof/proof.ts'

// What anyone with write access to a backup can put there.

const backedUp = await startBackedUpApp()
after(() => backedUp[Symbol.asyncDispose]())
const { annals, workspaceKey, folder: original, newFolder } = backedUp

async function copyOfBackup(): Promise<string> {
  const folder = join(await newFolder(), 'copy')
  await cp(original, folder, { recursive: true })
  return folder
}

const backUpTo = (folder: string) =>
  runCommandInHost(['backup', '--to', folder, '--with-secret-key'], commandEnv(annals))
const check = (folder: string) => runCommandInHost(['restore', '--from', folder, '--check-only'])
const pathsIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()

/** The first file whose path starts like this. */
const pathOf = (start: string) =>
  pathsIn(original).find((path) => path.startsWith(start) && /\.(zst|parquet|json)$/.test(path)) ??
  assert.fail(start)

/** Moves a file or folder of a backup elsewhere, and leaves a link to it. */
async function moveAway(folder: string, path: string): Promise<string> {
  const target = join(await newFolder(), 'outside')
  renameSync(join(folder, path), target)
  symlinkSync(target, join(folder, path))
  return target
}

test('a backup never writes through a link in its folder', async () => {
  const folder = await copyOfBackup()
  const victim = join(await newFolder(), 'victim')
  writeFileSync(victim, 'precious')
  const secretKey = parseSecretKey(commandEnv(annals)['ANNALS_SECRET_KEY'] ?? '')
  assert(secretKey)
  const fingerprint = fingerprintOf(secretKey).toString('hex').slice(0, 16)
  for (const name of ['manifest.json', `key/${fingerprint}`]) {
    symlinkSync(victim, join(folder, `${name}.tmp`))
  }
  await sendEvents(annals, workspaceKey, 1)
  const { code, stderr } = await backUpTo(folder)
  assert.equal(readFileSync(victim, 'utf8'), 'precious')
  assert.equal(code, 0, stderr)
  assert.equal((await check(folder)).code, 0)
})

test('a backup refuses folders in its folder that are links, and changes nothing outside', async () => {
  const parts = ['events', 'tables', 'archive', 'signer', 'key', dirname(pathOf('archive/'))]
  for (const part of parts) {
    const folder = await copyOfBackup()
    const target = await moveAway(folder, part)
    const paths = pathsIn(target)
    const { code, stdout, stderr } = await backUpTo(folder)
    assert.deepEqual([code, stdout], [1, ''], part)
    assert.match(stderr, new RegExp(`^annals: ${part} in [^\n]* is not a folder[^\n]*\n$`))
    assert.deepEqual(pathsIn(target), paths, part)
  }
})

test('a backup deletes only files that a backup writes', async () => {
  const folder = await copyOfBackup()
  const stamp = '20200101T000000000Z'
  const own = [
    `events/${stamp}-000001.zst`,
    `events/${stamp}-000002.zst.0123456789abcdef.tmp`,
    `tables/${stamp}-webhook.zst`,
    `tables/${stamp}-webhook.zst.0123456789abcdef.tmp`,
    `manifest.json.0123456789abcdef.tmp`,
  ]
  const others = ['tables/notes.txt', 'events/notes.txt', 'archive/deep/er/notes', 'key/id_rsa']
  mkdirSync(join(folder, 'archive/deep/er'), { recursive: true })
  for (const path of [...own, ...others]) writeFileSync(join(folder, path), 'x')
  const { code, stderr } = await backUpTo(folder)
  assert.equal(code, 0, stderr)
  const isThere = (path: string) => existsSync(join(folder, path))
  assert.deepEqual([own.filter(isThere), others.filter(isThere)], [[], others])
})

test('a lock of a backup that is a link, or not empty, is refused', async () => {
  const folder = await copyOfBackup()
  const lock = join(folder, 'lock')
  const outside = join(await newFolder(), 'outside')
  renameSync(lock, join(folder, 'old'))
  symlinkSync(outside, lock)
  const linked = await backUpTo(folder)
  assert.match(linked.stderr, /^annals: lock in [^\n]* is not a regular file[^\n]*\n$/)
  assert(!existsSync(outside))
  renameSync(join(folder, 'old'), lock)
  writeFileSync(lock, 'SQLite format 3')
  assert.match((await backUpTo(folder)).stderr, /^annals: lock in [^\n]* is not empty[^\n]*\n$/)
})

test('restoring or continuing a backup refuses files that are links or pipes, and does not wait', async () => {
  const key = `key/${readdirSync(join(original, 'key'))[0]}`
  const paths = ['manifest.json', pathOf('events/'), pathOf('archive/'), pathOf('signer/'), key]
  for (const path of paths) {
    for (const kind of ['link', 'pipe']) {
      const folder = await copyOfBackup()
      if (kind === 'link') await moveAway(folder, path)
      else {
        renameSync(join(folder, path), join(await newFolder(), 'outside'))
        execFileSync('mkfifo', [join(folder, path)])
      }
      const sentence = new RegExp(`^annals: ${path} in [^\n]* is not a regular file[^\n]*\n$`)
      if (path.endsWith('.json')) assert.match((await backUpTo(folder)).stderr, sentence)
      if (path.startsWith('events/')) continue
      const { code, stdout, stderr } = await check(folder)
      assert.deepEqual([code, stdout], [1, ''], `${kind} ${path}`)
      assert.match(stderr, sentence)
    }
  }
})

test('restoring refuses a folder in a backup that is a link', async () => {
  for (const part of ['events', 'archive', dirname(pathOf('archive/'))]) {
    const folder = await copyOfBackup()
    await moveAway(folder, part)
    const { code, stdout, stderr } = await check(folder)
    assert.deepEqual([code, stdout], [1, ''], part)
    assert.match(stderr, new RegExp(`^annals: ${part} in [^\n]* is not a folder[^\n]*\n$`))
  }
})

test('the folder of a backup can itself be a link', async () => {
  const link = join(await newFolder(), 'link')
  symlinkSync(await copyOfBackup(), link)
  const { code, stderr } = await backUpTo(link)
  assert.equal(code, 0, stderr)
  await using target = await createRestoreTarget()
  const restored = await target.restore(link)
  assert.equal(restored.code, 0, restored.stdout + restored.stderr)
})
