import { readdirSync, readFileSync } from 'node:fs'

const TICK_US = 10_000

type Stat = { pid: number; parent: number; cpuUs: number }

/** The CPU time of a process so far, in microseconds, over all threads. */
export function cpuUsOf(pid: number): number {
  return readStat(pid)?.cpuUs ?? 0
}

/** The CPU time of a service, with the API processes that it has started. */
export function serviceCpuUs(pid: number): number {
  const processes = allStats().filter(
    (each) => each.parent === pid && titleOf(each.pid).includes('main.ts'),
  )
  return processes.reduce((sum, { cpuUs }) => sum + cpuUs, cpuUsOf(pid))
}

/**
 * The CPU time of PostgreSQL: the postmaster, its children, and the children that have exited, so that
 * connections that end between two readings are included.
 */
export function postgresCpuUs(postmaster: number): number {
  const children = allStats().filter(({ parent }) => parent === postmaster)
  const own = readStat(postmaster)
  return (
    children.reduce((sum, { cpuUs }) => sum + cpuUs, 0) +
    (own?.cpuUs ?? 0) +
    waitedCpuUs(postmaster)
  )
}

/** The CPU time of one database user's connections, whose process titles contain the name. */
export function postgresCpuUsOfUser(postmaster: number, user: string): number {
  return allStats()
    .filter(({ parent, pid }) => parent === postmaster && titleOf(pid).includes(` ${user} `))
    .reduce((sum, { cpuUs }) => sum + cpuUs, 0)
}

export const MIB = 2 ** 20

export function rssBytesOf(pid: number): number {
  return statusBytesOf(pid, 'VmRSS')
}

/** The peak resident memory. */
export function peakRssBytesOf(pid: number): number {
  return statusBytesOf(pid, 'VmHWM')
}

function statusBytesOf(pid: number, name: string): number {
  const status = readStatus(pid)
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0) * 1_024
}

/** Empty if the process has exited. */
function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}

function allStats(): Stat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? [])
}

function titleOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

function fieldsOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The process name is in parentheses and can contain spaces.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}

function readStat(pid: number): Stat | null {
  const fields = fieldsOf(pid)
  if (!fields) return null
  return {
    pid,
    parent: Number(fields[1]),
    cpuUs: (Number(fields[11]) + Number(fields[12])) * TICK_US,
  }
}

function waitedCpuUs(pid: number): number {
  const fields = fieldsOf(pid)
  return fields ? (Number(fields[13]) + Number(fields[14])) * TICK_US : 0
}
