import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { ANNALS } from '../harness/app/annals-process.ts'

const NODE = join(ANNALS, '../node')
const TRIES_MAX = 3
/**
 * A start of Node alone takes about 40 ms of CPU time, and a command may take 300 ms. The ratio doesn't depend on the
 * speed of the machine. Loading the service would be 30 times as much.
 */
const RATIO_MAX = 300 / 40

/** The CPU time of a process and its children, which the shell measures. */
function cpuMs(program: string, args: readonly string[], more: NodeJS.ProcessEnv = {}): number {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const script = '"$0" "$@" >/dev/null 2>&1; times'
  const { stdout } = spawnSync('bash', ['-c', script, program, ...args], {
    cwd: '/',
    encoding: 'utf8',
    env: { PATH, NODE_COMPILE_CACHE, ...more },
  })
  const children = stdout.trim().split('\n').at(-1) ?? ''
  const times = [...children.matchAll(/(\d+)m([\d.]+)s/g)]
  assert.equal(times.length, 2, stdout)
  return times.reduce((sum, [, minutes, seconds]) => {
    return sum + (Number(minutes) * 60 + Number(seconds)) * 1_000
  }, 0)
}

function assertStartsFast(command: string, env?: NodeJS.ProcessEnv): void {
  // Other programs of the machine can slow down one of the two, so one of a few pairs is enough.
  const ratios: number[] = []
  do ratios.push(cpuMs(ANNALS, command.split(' '), env) / cpuMs(NODE, ['-e', '0']))
  while (ratios.length < TRIES_MAX && Math.min(...ratios) >= RATIO_MAX)
  assert(Math.min(...ratios) < RATIO_MAX, ratios.join(', '))
}

for (const command of [
  '--help',
  '--version',
  'help events send',
  'company --help',
  'no-such-command',
  'company show',
  'openapi',
  'completion bash',
  'config print',
]) {
  test(`annals ${command} starts without loading the service`, () => assertStartsFast(command))
}

/** Nothing listens on this port. */
const NO_DATABASE = {
  ANNALS_DATABASE_URL: 'postgres://annals@127.0.0.1:1/annals',
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
}

test('annals company list starts without loading the service', () => {
  assertStartsFast('company list', NO_DATABASE)
})

/** Names each module of Kysely that a process loads from the package. */
const NAME_MODULES = `
  import { registerHooks } from 'node:module'
  registerHooks({
    load: (url, context, next) => {
      if (url.includes('/node_modules/kysely/')) process.stderr.write('MODULE ' + url)
      return next(url, context)
    },
  })
`

test('commands that use the database load Kysely from the bundle of npm install', () => {
  const preload = `data:text/javascript,${encodeURIComponent(NAME_MODULES)}`
  const env = { PATH: process.env.PATH, ...NO_DATABASE, NODE_OPTIONS: `--import ${preload}` }
  const { stderr } = spawnSync(ANNALS, ['company', 'list'], { cwd: '/', encoding: 'utf8', env })
  assert.match(stderr, /ECONNREFUSED|refused/)
  assert.doesNotMatch(stderr, /MODULE/)
})
