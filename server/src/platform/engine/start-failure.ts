import * as fs from 'node:fs'
import { join } from 'node:path'

import { EngineError } from './engine-error.ts'
import type { EngineFiles } from './files.ts'

const LOG_BYTES_MAX = 64 * 1024
const LINES_MAX = 20
const REASON_LINES_MAX = 3

/** The size of each log file. Everything after it belongs to a later start. */
type LogMark = ReadonlyMap<string, number>

export function markEngineLog(files: EngineFiles): LogMark {
  const paths = fs.readdirSync(files.log).map((name) => join(files.log, name))
  return new Map(paths.map((path) => [path, fs.statSync(path).size]))
}

/**
 * PostgreSQL's last log lines since the mark. At first it writes to the start log, which is new at each
 * start, then to the files of the log collector.
 */
export function readEngineLog(files: EngineFiles, mark: LogMark): string[] {
  return [files.startLog, ...markEngineLog(files).keys()]
    .flatMap((path) => readFrom(path, mark.get(path) ?? 0).split('\n'))
    .filter((line) => line.trim() !== '')
    .slice(-LINES_MAX)
}

/** Explains from its last log lines why PostgreSQL ended during startup. */
export function explainStartFailure(files: EngineFiles, lines: readonly string[]): EngineError {
  const reason = failureReason(lines) || 'it logged no reason'
  return new EngineError(
    `PostgreSQL in ${files.engine} failed to start: ${reason} (log: ${files.log}).`,
    { cause: new Error(lines.join('\n')) },
  )
}

/** PostgreSQL's own reason: its last fatal line, or what it printed before it could log. */
export function failureReason(lines: readonly string[]): string {
  // Our own connection attempts during startup also produce fatal lines.
  const relevant = lines.filter((line) => !/FATAL: +the database system is /.test(line))
  const fatal = relevant.findLast((line) => /(?:FATAL|PANIC): /.test(line))
  if (fatal !== undefined) return fatal.replace(/^.*?(?:FATAL|PANIC): +/, '').trim()
  const printed = relevant.filter((line) => !/ (?:LOG|HINT|DETAIL|WARNING): /.test(line))
  return printed.slice(-REASON_LINES_MAX).join(' ').trim()
}

/**
 * After the postmaster is killed, its backends continue until they notice. Until then, PostgreSQL correctly
 * refuses to start on the data folder.
 */
export function isHeldByOldBackends(lines: readonly string[]): boolean {
  return lines.some((line) =>
    /pre-existing shared memory block|lock file ".*" already exists/.test(line),
  )
}

function readFrom(path: string, offset: number): string {
  const file = fs.openSync(path, 'r')
  try {
    const { size } = fs.fstatSync(file)
    // If the file is shorter than before, it was truncated for a new hour.
    const start = Math.max(size < offset ? 0 : offset, size - LOG_BYTES_MAX)
    const buffer = Buffer.alloc(size - start)
    const bytesRead = fs.readSync(file, buffer, 0, buffer.length, start)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    fs.closeSync(file)
  }
}
