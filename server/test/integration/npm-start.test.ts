import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../harness/timing/eventually.ts'

const ROOT = join(import.meta.dirname, '../../..')

const STOPS: [name: string, stop: (npm: ChildProcess) => void][] = [
  ['stopping npm', (npm) => npm.kill('SIGTERM')],
  // A terminal signals all processes, and npm forwards the signal, so the service gets it twice.
  ['Ctrl-C on npm start', ({ pid }) => pid !== undefined && process.kill(-pid, 'SIGINT')],
]

for (const [name, stop] of STOPS) {
  test(`${name} stops the service and its engine, and leaves nothing running`, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'annals-npm-'))
    const npm = spawn('npm', ['start'], {
      cwd: ROOT,
      env: { ...process.env, ANNALS_DATA_DIR: dataDir, ANNALS_PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
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
        { timeoutMs: 120_000 },
      )
      assert.equal((await fetch(`${url}/health`)).status, 200)
      const left = once(npm, 'exit')
      stop(npm)
      await left
      await eventually(() => assert.rejects(fetch(`${url}/health`)))
      await eventually(() => assert.match(printed, /"engine\.stopped"/))
    } finally {
      if (npm.exitCode === null && npm.pid !== undefined) process.kill(-npm.pid, 'SIGKILL')
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
}
