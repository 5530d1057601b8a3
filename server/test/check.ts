import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

const STEPS = [
  ['tsc'],
  ['tsc', '-p', 'dashboard'],
  ['tsc', '-p', 'dashboard/test'],
  ['oxlint', '--type-aware', '--deny-warnings'],
  ['prettier', '--check', '--log-level', 'warn', '.'],
] as const

/** Types, lint and format. True when all hold; every failing tool has printed its findings. */
export function check(): boolean {
  const failed = STEPS.filter(([tool, ...options]) => {
    const command = join(ROOT, 'node_modules/.bin', tool)
    // oxlint and prettier carry a node shebang, which must find the installed Node.
    const path = `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`
    const env = { ...process.env, PATH: path }
    const { status } = spawnSync(command, options, { cwd: ROOT, stdio: 'inherit', env })
    process.stdout.write(`${status === 0 ? 'ok' : 'FAILED'}: ${[tool, ...options].join(' ')}\n`)
    return status !== 0
  })
  return failed.length === 0
}

if (import.meta.main) process.exitCode = check() ? 0 : 1
