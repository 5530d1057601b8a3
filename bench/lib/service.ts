import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

export type Service = AsyncDisposable & { pid: number; port: number }

/** A program of the project in its own process; ready when it prints the address it listens on. */
export function startProgram(file: string, env: Record<string, string>): Promise<Service> {
  return start(join(ROOT, 'bin/node'), [join(ROOT, file)], env)
}

async function start(
  command: string,
  options: readonly string[],
  env: Record<string, string>,
): Promise<Service> {
  const child = spawn(command, options, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await readPort(child)
  return {
    pid: child.pid ?? 0,
    port,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function readPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const port = /127\.0\.0\.1:(\d+)/.exec(text)?.[1]
      if (port) resolve(Number(port))
    })
    child.once('exit', (code) =>
      reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}: ${text}`)),
    )
  })
}

export function startAnnals(env: Record<string, string>, role = 'all'): Promise<Service> {
  return start(join(ROOT, 'bin/annals'), ['serve', '--role', role], { ANNALS_PORT: '0', ...env })
}

/** Runs an `annals` command and returns what it prints. */
export function annals(env: Record<string, string>, ...options: string[]): string {
  return execFileSync(join(ROOT, 'bin/annals'), options, {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

export function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'engine/cluster/postmaster.pid'), 'utf8').split('\n')[0])
}
