import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const ROOT = join(import.meta.dirname, '../..')

const STEPS = [
  // It uses one core only.
  ['prettier', '--check', '--log-level', 'warn', '.'],
  // Its type check reports what tsc reports, in half of the CPU time: tsc would check the server's files
  // again for the browser tests, and the type-aware rules need the types anyway.
  ['oxlint', '--type-aware', '--type-check', '--deny-warnings'],
] as const

/** Checks types, lint and format. Returns true if all pass; a failing tool prints its findings. */
export async function check(): Promise<boolean> {
  const results = await Promise.all(STEPS.map(runStep))
  return results.every((isSuccess) => isSuccess)
}

async function runStep([tool, ...options]: (typeof STEPS)[number]): Promise<boolean> {
  const command = join(ROOT, 'node_modules/.bin', tool)
  // oxlint and prettier have a node shebang, which must find the installed Node.
  const path = `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`
  const env = { ...process.env, PATH: path }
  const child = spawn(command, options, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env })
  const exited = new Promise<number | null>((resolve, reject) => {
    child.on('close', resolve).on('error', reject)
  })
  const [status, ...output] = await Promise.all([exited, text(child.stdout), text(child.stderr)])
  const verdict = status === 0 ? 'ok' : 'FAILED'
  process.stdout.write(`${output.join('')}${verdict}: ${[tool, ...options].join(' ')}\n`)
  return status === 0
}

if (import.meta.main) process.exitCode = (await check()) ? 0 : 1
