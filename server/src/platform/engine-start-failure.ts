import * as fs from 'node:fs'
import { join } from 'node:path'

import { diskFullError, EngineError } from './engine-error.ts'
import type { EngineFiles } from './engine-files.ts'

const LOG_BYTES_MAX = 64 * 1024
const LINES_MAX = 20

/**
 * What PostgreSQL wrote since `sinceMs`: at first to its start log, later to the collector's files.
 */
export function readEngineLog(files: EngineFiles, sinceMs: number): string[] {
  const collected = fs.readdirSync(files.log).map((name) => join(files.log, name))
  return [files.startLog, ...collected]
    .filter((path) => fs.statSync(path).mtimeMs >= sinceMs - 1_000)
    .flatMap((path) => readTail(path).split('\n'))
    .filter((line) => line.trim() !== '')
    .slice(-LINES_MAX)
}

/** Why PostgreSQL ended while it started, from its last lines. */
export function explainStartFailure(files: EngineFiles, lines: readonly string[]): EngineError {
  const cause = new Error(lines.join('\n'))
  if (lines.some((line) => line.includes('No space left on device'))) {
    return diskFullError(files.engine, cause)
  }
  const reason = failureReason(lines) ?? 'it said nothing'
  return new EngineError(
    `PostgreSQL in ${files.engine} ended while it started: ${reason} (its log: ${files.log}).`,
    { cause },
  )
}

/** PostgreSQL's own last word: the last fatal line, else the last line that is no mere notice. */
export function failureReason(lines: readonly string[]): string | undefined {
  const spoken = lines.filter((line) => !/ (?:LOG|HINT|DETAIL): /.test(line))
  const fatal = spoken.findLast((line) => /(?:FATAL|PANIC): /.test(line)) ?? spoken.at(-1)
  return fatal?.replace(/^.*?(?:FATAL|PANIC): +/, '').trim()
}

/**
 * After a kill of the postmaster its backends live on until they notice; until then PostgreSQL
 * rightly refuses the data folder.
 */
export function isHeldByOldBackends(lines: readonly string[]): boolean {
  return lines.some((line) =>
    /pre-existing shared memory block|lock file ".*" already exists/.test(line),
  )
}

function readTail(path: string): string {
  const file = fs.openSync(path, 'r')
  try {
    const { size } = fs.fstatSync(file)
    const buffer = Buffer.alloc(Math.min(size, LOG_BYTES_MAX))
    const bytesRead = fs.readSync(file, buffer, 0, buffer.length, size - buffer.length)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    fs.closeSync(file)
  }
}
