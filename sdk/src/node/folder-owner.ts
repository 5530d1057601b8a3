import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AnnalsError } from '../client/errors.ts'

/** The ID of the process and, on Linux, when it started. */
const OWNER = /^owner-(\d+)-(.*)$/

/**
 * Makes this process the owner of a folder, or throws if another process is. Returns a function that releases
 * the folder. An owner that crashed is ignored: its process no longer runs, or a process with the same ID, as
 * in a restarted container, started at another time.
 *
 * Each process creates a file of its own and then looks for others. So of two processes that start at the same
 * time, at least one sees the other and gives up.
 */
export function lockFolder(folder: string): () => void {
  const own = `owner-${process.pid}-${processStartTime(process.pid) ?? ''}`
  const path = join(folder, own)
  const release = () => rmSync(path, { force: true })
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw isCode(error, 'EEXIST') ? inUseError(folder, process.pid) : error
  }
  try {
    for (const name of readdirSync(folder)) {
      const [, pid, startedAt = ''] = OWNER.exec(name) ?? []
      if (pid === undefined || name === own) continue
      if (isRunning(Number(pid), startedAt)) throw inUseError(folder, Number(pid))
      // No other process has a file of this name.
      rmSync(join(folder, name), { force: true })
    }
  } catch (error) {
    release()
    throw error
  }
  return release
}

function inUseError(folder: string, pid: number): AnnalsError {
  const message = `The spool ${folder} is in use by process ${pid}. Use one folder per process.`
  return new AnnalsError(message, { code: 'spool_in_use' })
}

function isRunning(pid: number, startedAt: string): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM means that it runs, as another user.
    if (!isCode(error, 'EPERM')) return false
  }
  const current = processStartTime(pid)
  return startedAt === '' || current === null || startedAt === current
}

/** When a process started, on Linux. Null elsewhere, and if the system hides it. */
function processStartTime(pid: number): string | null {
  const stat = tryRead(`/proc/${pid}/stat`)
  const boot = tryRead('/proc/sys/kernel/random/boot_id')
  if (stat === null || boot === null) return null
  // The name in parentheses can contain spaces. The start time is field 22.
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return `${boot.trim()}-${ticks}`
}

function tryRead(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
