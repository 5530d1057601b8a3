import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
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
function cpuMs(program: string, args: readonly string[]): number {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const script = '"$0" "$@" >/dev/null 2>&1; times'
  const { stdout } = spawnSync('bash', ['-c', script, program, ...args], {
    cwd: '/',
    encoding: 'utf8',
    env: { PATH, NODE_COMPILE_CACHE },
  })
  const children = stdout.trim().split('\n').at(-1) ?? ''
  const times = [...children.matchAll(/(\d+)m([\d.]+)s/g)]
  assert.equal(times.length, 2, stdout)
  return times.reduce((sum, [, minutes, seconds]) => {
    return sum + (Number(minutes) * 60 + Number(seconds)) * 1_000
  }, 0)
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
  test(`annals ${command} starts without loading the service`, () => {
    // Other programs of the machine can slow down one of the two, so one of a few pairs is enough.
    const ratios: number[] = []
    do ratios.push(cpuMs(ANNALS, command.split(' ')) / cpuMs(NODE, ['-e', '0']))
    while (ratios.length < TRIES_MAX && Math.min(...ratios) >= RATIO_MAX)
    assert(Math.min(...ratios) < RATIO_MAX, ratios.join(', '))
  })
}
