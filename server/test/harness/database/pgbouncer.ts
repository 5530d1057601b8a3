import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Whether PgBouncer is installed on this machine. It is not an npm package. */
export function hasPgbouncer(): boolean {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

type Upstream = { port: number; user: string; password: string; database: string }

/** Starts PgBouncer on loopback, in transaction mode, in front of the database on the given port. */
export async function startPgbouncer(
  { port, user, password, database }: Upstream,
  settings: readonly string[] = [],
): Promise<AsyncDisposable & { url: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'annals-pgbouncer-'))
  const listenPort = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `${database} = host=127.0.0.1 port=${port} user=${user} password=${password}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${listenPort}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    ...settings,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  chmodSync(folder, 0o755)
  // PgBouncer refuses to run as root.
  const asUser = process.getuid?.() === 0 ? ['--user', 'nobody'] : []
  const child = spawn('pgbouncer', [...asUser, file], { stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  await untilListening(child)
  return {
    url: `postgres://${user}@127.0.0.1:${listenPort}/${database}`,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilListening({ stderr }: ChildProcess): Promise<void> {
  assert(stderr)
  let said = ''
  for await (const line of createInterface({ input: stderr })) {
    said += `${line}\n`
    if (line.includes('process up')) {
      stderr.resume()
      return
    }
  }
  assert.fail(`PgBouncer did not start:\n${said}`)
}

/** A port that nothing uses now, for a process that can't tell which one it got. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  assert(typeof address === 'object' && address !== null)
  return address.port
}
