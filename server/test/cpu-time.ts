import { readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'

/** The report of a test file: `1.23 s of CPU time: server/test/tidy.test.ts`. */
export const CPU_TIME = /^(\d+\.\d+) s of CPU time: (.+)$/
const TICKS_PER_SECOND = 100
/** In the fields of /proc/self/stat after the program name: `cutime` and `cstime`. */
const CHILDREN_FIELDS = [13, 14] as const

/** Reports the CPU time of a test file when it ends: its own process and its child processes. */
export function reportCpuTime(t: TestContext): void {
  const startedAt = cpuSeconds()
  t.after(() => t.diagnostic(`${(cpuSeconds() - startedAt).toFixed(2)} s of CPU time: ${t.name}`))
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + childSeconds()
}

/** The CPU time of the processes that have ended. 0 on systems without /proc. */
function childSeconds(): number {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return CHILDREN_FIELDS.reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS_PER_SECOND
  } catch {
    return 0
  }
}
