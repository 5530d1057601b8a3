import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AnnalsError } from '../client/errors.ts'

const NAME = 'owner.json'

/**
 * Makes this process the owner of a folder, or throws if another process is. Returns a function that releases
 * the folder. An owner that crashed is replaced: its process no longer runs, or a process with the same ID, as
 * in a restarted container, started at another time.
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, NAME)
  const own = JSON.stringify({ pid: process.pid, startedAt: processStartTime(process.pid) })
  for (;;) {
    try {
      writeFileSync(path, own, { flag: 'wx', mode: 0o600 })
      return () => rmSync(path, { force: true })
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error
    }
    removeStale(path, folder)
  }
}

function removeStale(path: string, folder: string): void {
  const text = readIfExists(path)
  if (text === null) return
  const owner = parseOwner(text)
  if (owner !== null && isRunning(owner)) {
    const message = `The spool ${folder} is in use by process ${owner.pid}. Use one folder per process.`
    throw new AnnalsError(message, { code: 'spool_in_use' })
  }
  // Of two processes that get here, one renames the file, and the other finds a new owner.
  const removed = `${path}.${process.pid}.stale`
  try {
    renameSync(path, removed)
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error
  }
  rmSync(removed, { force: true })
}

type Owner = { pid: number; startedAt: string | null }

function parseOwner(text: string): Owner | null {
  try {
    const { pid, startedAt }: { pid?: unknown; startedAt?: unknown } = JSON.parse(text)
    if (typeof pid !== 'number') return null
    return { pid, startedAt: typeof startedAt === 'string' ? startedAt : null }
  } catch {
    // The process was killed while it wrote the file.
    return null
  }
}

function isRunning({ pid, startedAt }: Owner): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // The process runs, as another user.
    return isCode(error, 'EPERM')
  }
  return startedAt === null || startedAt === processStartTime(pid)
}

/** When a process started, on Linux. Null elsewhere. */
function processStartTime(pid: number): string | null {
  const stat = readIfExists(`/proc/${pid}/stat`)
  const boot = readIfExists('/proc/sys/kernel/random/boot_id')
  if (stat === null || boot === null) return null
  // The name in parentheses can contain spaces. The start time is field 22.
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return `${boot.trim()} ${ticks}`
}

function readIfExists(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
