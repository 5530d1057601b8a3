import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { hasId, hasName } from './user.ts'

test('an id exists only if the user namespace maps it', () => {
  const whole = '         0          0 4294967295\n'
  const container = '         0     100000      65536\n'
  const rootless = '         0       1000          1\n         1     100000      60000\n'
  assert.deepEqual(
    [whole, container, rootless, ''].map((map) => hasId(map, 60_800)),
    [true, true, false, false],
  )
  assert.deepEqual([hasId(rootless, 60_000), hasId(rootless, 60_001)], [true, false])
  assert.deepEqual([hasId(container, 65_535), hasId(container, 65_536)], [true, false])
})

test('treats an id as free only if the system confirms it', async (t) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-getent-'))
  const { PATH = '' } = process.env
  t.after(() => (process.env.PATH = PATH))
  process.env.PATH = `${folder.path}:${PATH}`
  const ask = async (script: string, timeoutMs?: number) => {
    await writeFile(join(folder.path, 'getent'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return await hasName('passwd', 60_800, timeoutMs)
  }
  assert.equal(await ask('echo "x:x:60800:60800::/:/bin/sh"'), true)
  assert.equal(await ask('exit 2'), false)
  assert.equal(await ask('exit 1'), null)
  assert.equal(await ask('exec sleep 60', 50), null)
})
