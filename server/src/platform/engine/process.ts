import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { EngineError, errorCode } from './engine-error.ts'
import { type EngineFiles, chownToDataOwner } from './files.ts'
import { type EngineRunner, possibleEnginePaths } from './runner.ts'
import { engineArguments, ENGINE_PORT, type EngineSettings } from './settings.ts'

const POLL_MS = 20
/** A fast shutdown first writes all changed pages. An immediate one leaves that to the next start. */
const STOPS = [
  { signal: 'SIGINT', waitMsMax: 60_000 },
  { signal: 'SIGQUIT', waitMsMax: 15_000 },
] as const

/**
 * Starts PostgreSQL detached from this process: in its own session, so that Ctrl-C in a terminal doesn't
 * reach the database, and with a file for its output, because it may outlive us. Returns a function that
 * checks whether it is still running.
 */
export function spawnPostmaster(
  files: EngineFiles,
  runner: EngineRunner,
  settings: EngineSettings,
): () => boolean {
  const cluster = join(runner.engine, 'cluster')
  const program = join(runner.native, 'bin', 'postgres')
  const { file, args, options } = runner.command(program, engineArguments(cluster, settings))
  fs.rmSync(files.startLog, { force: true })
  const log = fs.openSync(files.startLog, 'wx', 0o600)
  try {
    chownToDataOwner(files, files.startLog)
    const child = spawn(file, args, { ...options, detached: true, stdio: ['ignore', log, log] })
    let isAlive = true
    child.once('exit', () => (isAlive = false))
    child.once('error', (error) => {
      isAlive = false
      fs.appendFileSync(files.startLog, `${error.message}\n`)
    })
    child.unref()
    return () => isAlive
  } finally {
    fs.closeSync(log)
  }
}

/** The running postmaster of this data folder. The pid comes from its pid file and is verified. */
export function findPostmaster(files: EngineFiles): number | null {
  const pid = readPid(pidFile(files))
  return pid !== null && isPostmasterOf(pid, files) ? pid : null
}

/**
 * PostgreSQL refuses to start while its old pid exists, even if another program has that pid now. This is
 * common in containers, where pids start again from 1. Only such files are removed. If old backends are
 * still running, PostgreSQL detects them by its shared memory, not by these files.
 */
export function removeStalePidFiles(files: EngineFiles): void {
  for (const path of [pidFile(files), join(files.run, `.s.PGSQL.${ENGINE_PORT}.lock`)]) {
    const pid = readPid(path)
    if (pid === null || isPostmasterOf(pid, files) || !isAlive(pid)) continue
    fs.rmSync(path, { force: true })
  }
}

/** Fast shutdown, then an immediate one. The caller has checked that no process uses the engine. */
export async function stopPostmaster(files: EngineFiles, pid: number | null): Promise<void> {
  if (pid === null) return
  for (const { signal, waitMsMax } of STOPS) {
    if (!isPostmasterOf(pid, files)) return
    sendSignal(pid, signal)
    const giveUpAtMs = performance.now() + waitMsMax
    while (isPostmasterOf(pid, files) && performance.now() < giveUpAtMs) await delay(POLL_MS)
  }
  if (!isPostmasterOf(pid, files)) return
  throw new EngineError(`PostgreSQL (process ${pid}) of ${files.dataDir} did not stop in time.`)
}

function sendSignal(pid: number, signal: 'SIGINT' | 'SIGQUIT'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    // It has ended on its own meanwhile.
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

function pidFile(files: EngineFiles): string {
  return join(files.cluster, 'postmaster.pid')
}

function readPid(path: string): number | null {
  try {
    return parsePid(fs.readFileSync(path, 'utf8'))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

/** The first line has only the pid, which is negative for a standalone backend. */
export function parsePid(text: string): number | null {
  const pid = Number(text.split('\n', 1)[0])
  return Number.isSafeInteger(pid) && pid > 0 ? pid : null
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** Also false for a zombie, which has no command line. */
function isPostmasterOf(pid: number, files: EngineFiles): boolean {
  const commandLine = readCommandLine(pid)
  const clusters = possibleEnginePaths(files).map((engine) => join(engine, 'cluster'))
  if (clusters.some((cluster) => commandLine.includes(`/postgres -D ${cluster} `))) return true
  // The data folder may have been moved while the engine was running.
  return commandLine.includes('/postgres -D ') && worksIn(pid, files.cluster)
}

function readCommandLine(pid: number): string {
  try {
    return process.platform === 'linux'
      ? fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      : execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

function worksIn(pid: number, folder: string): boolean {
  try {
    const [one, other] = [fs.statSync(`/proc/${pid}/cwd`), fs.statSync(folder)]
    return one.dev === other.dev && one.ino === other.ino
  } catch {
    return false
  }
}
