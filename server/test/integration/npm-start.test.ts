import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'

const ROOT = join(import.meta.dirname, '../../..')

test('stopping npm stops the service and its engine, and leaves nothing running', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-npm-'))
  const npm = spawn('npm', ['start'], {
    cwd: ROOT,
    env: { ...process.env, ANNALS_DATA_DIR: dataDir, ANNALS_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  npm.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  try {
    const url = await eventually(
      () => {
        const found = /running at (http:\S+)/.exec(printed)?.[1]
        assert(found, printed)
        return found
      },
      { timeoutMs: 60_000 },
    )
    assert.equal((await fetch(`${url}/health`)).status, 200)
    npm.kill('SIGTERM')
    await once(npm, 'exit')
    await eventually(() => assert.rejects(fetch(`${url}/health`)), { timeoutMs: 20_000 })
    await eventually(() => assert.match(printed, /"engine\.stopped"/), { timeoutMs: 20_000 })
  } finally {
    npm.kill('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }
})
