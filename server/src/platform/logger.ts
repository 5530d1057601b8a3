import { pino, type Logger } from 'pino'

export type { Logger }

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/**
 * One line of JSON each; readable lines when a person watches. `event` names what happened
 * (`noun.past-participle`), ids and durations are fields, payloads and secrets never appear.
 */
export function createLogger(level: LogLevel, stream: 'stdout' | 'stderr' = 'stdout'): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const output = process[stream]
  return output.isTTY
    ? pino(options, { write: (line) => void output.write(readable(line)) })
    : pino(options, pino.destination(output.fd))
}

function readable(line: string): string {
  const { level, time, event, msg, ...fields } = JSON.parse(line)
  const rest = Object.entries(fields)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
  const label = pino.levels.labels[level] ?? level
  const words = [String(time).slice(11, 23), label.padEnd(5), event, msg, rest]
  return `${words.filter((word) => word !== undefined && word !== '').join(' ')}\n`
}
