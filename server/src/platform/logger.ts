import { pino, type Logger } from 'pino'
import { LogDestination, openNonBlocking } from './log-destination.ts'
import type { LogLevel } from './log-level.ts'
import { parseJson } from './json/parse-json.ts'
import { printable } from './terminal/printable.ts'

export type { Logger }

/**
 * Writes one line of JSON per entry, or readable lines on a terminal. `event` names what happened
 * (`noun.past-participle`), ids and durations are fields, and payloads and secrets never appear.
 */
export function createLogger(level: LogLevel, stream: 'stdout' | 'stderr' = 'stdout'): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
  }
  const output = process[stream]
  const format = output.isTTY ? readableLine : (line: string) => line
  const open = () => openNonBlocking(output.fd)
  return pino(options, new LogDestination(open, { noticeOf: droppedNotice, format }))
}

/** The fields of an error that are logged. */
const ERROR_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'message',
  'stack',
  'code',
  'syscall',
  'address',
  'port',
  'constraint',
])

/**
 * Logs only known fields: libraries attach more to an error, such as a client with the database's password,
 * or the values of a row.
 */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error)
  const fields = Object.entries(pino.stdSerializers.err(error))
  const known = Object.fromEntries(fields.filter(([name]) => ERROR_FIELDS.has(name)))
  if (!(error instanceof AggregateError)) return known
  return { ...known, aggregateErrors: error.errors.map(describeError) }
}

/**
 * Prints text for a person between the lines of the log. Like those, it never blocks or fails, but it waits
 * for a slow reader or a paused terminal.
 */
export function printText(logger: Logger, text: string): void {
  destinationOf(logger)?.print(text)
}

/** How many lines of this logger could not be written. */
export function droppedLines(logger: Logger): number {
  return destinationOf(logger)?.dropped ?? 0
}

/** Null for a logger that `createLogger` did not create. */
function destinationOf(logger: Logger): LogDestination | null {
  const stream: unknown = Reflect.get(logger, pino.symbols.streamSym)
  return stream instanceof LogDestination ? stream : null
}

function droppedNotice(lines: number): string {
  const { warn } = pino.levels.values
  return `{"level":${warn}${pino.stdTimeFunctions.isoTime()},"event":"log.dropped","lines":${lines}}\n`
}

/** The line for a terminal. Its texts can come from anyone, so none of them can change the screen. */
export function readableLine(line: string): string {
  const { level, time, event, msg, ...fields } = parseJson(line)
  const rest = Object.entries(fields)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
  const label = pino.levels.labels[level] ?? level
  const words = [String(time).slice(11, 23), label.padEnd(5), event, msg, rest]
  const text = words.filter((word) => word !== undefined && word !== '').join(' ')
  return `${printable(text)}\n`
}
