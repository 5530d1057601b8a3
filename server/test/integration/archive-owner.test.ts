import assert from 'node:assert/strict'
import { chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { newId } from '../../src/platform/id.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'

const OWNER = { uid: 4_242, gid: 4_343 }
const OPTIONS = { s3Endpoint: null, s3Region: null }
const newKey = () => `exports/${newId()}/${newId()}/000001`
const needsRoot = process.getuid?.() === 0 ? false : 'only root can give files away'

test(
  'what root writes to an archive folder belongs to the owner of the folder',
  { skip: needsRoot },
  async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-owned-'))
    chownSync(folder.path, OWNER.uid, OWNER.gid)
    for (const root of [folder.path, join(folder.path, 'new/archive')]) {
      await using store = await openObjectStore(pathToFileURL(root).href, OPTIONS)
      await store.put(newKey(), Buffer.from('bytes'))
      const entries = readdirSync(root, { recursive: true }).map(String)
      // Two are locks of drafts, which another user removes if this process is killed.
      assert.equal(entries.filter((entry) => entry.endsWith('lock')).length, 2, entries.join(' '))
      for (const entry of ['', ...entries]) {
        const { uid, gid } = statSync(join(root, entry))
        assert.deepEqual({ uid, gid }, OWNER, entry)
      }
    }
  },
)

test(
  'the owner of an archive folder cannot make root give away a file elsewhere',
  { skip: needsRoot },
  async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-owned-'))
    const [root, secret] = [join(folder.path, 'archive'), join(folder.path, 'secret')]
    writeFileSync(secret, '')
    mkdirSync(join(root, '.drafts'), { recursive: true })
    symlinkSync(secret, join(root, '.drafts/lock'))
    for (const path of [root, join(root, '.drafts')]) chownSync(path, OWNER.uid, OWNER.gid)
    await using store = await openObjectStore(pathToFileURL(root).href, OPTIONS)
    await store.put(newKey(), Buffer.from('bytes'))
    assert.equal(statSync(secret).uid, 0)
  },
)
