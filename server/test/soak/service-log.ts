import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

const FATAL = 60
const ERROR = 50
const LINES_KEPT_MAX = 20
const LINE_LENGTH_MAX = 500
/** Only a bug in the service causes these events, never an injected fault. */
const ALARMING_EVENTS = new Set(['request.failed', 'process.uncaught', 'service.killed'])

type Line = { level: number; event?: string; err?: { message?: string } }

/** The log lines of the service processes, counted by event. Keeps the alarming ones. */
export class ServiceLog {
  readonly #alarms = new Map<string, number>()
  readonly #errors = new Map<string, number>()
  readonly #copy: number | null

  /** If a file is given, all lines are also written to it. */
  constructor(file: string | null) {
    this.#copy = file === null ? null : openSync(file, 'a')
  }

  /** Lines that must never appear in the log. Repeated lines are counted. */
  get alarms(): string[] {
    return [...this.#alarms].map(([line, count]) => `${count} times ${line}`)
  }

  /** Error lines by the name of their event. During a fault some are expected. */
  get errors(): Record<string, number> {
    return Object.fromEntries(this.#errors)
  }

  /** Reads both outputs to their end. */
  follow(
    { stdout, stderr }: { stdout: Readable; stderr: Readable },
    onLine: (line: string) => void,
  ): void {
    createInterface({ input: stdout }).on('line', (line) => {
      if (this.#copy !== null) writeSync(this.#copy, `${line}\n`)
      this.#read(line)
      onLine(line)
    })
    createInterface({ input: stderr }).on('line', (line) => this.#recordAlarm(`stderr: ${line}`))
  }

  #read(text: string): void {
    // Other lines are for people, and the last line of a killed process can be truncated.
    if (!text.startsWith('{') || !text.endsWith('}')) return
    const line: Line = JSON.parse(text)
    const { level, event = 'unnamed' } = line
    if (level >= ERROR) this.#errors.set(event, (this.#errors.get(event) ?? 0) + 1)
    if (level >= FATAL || ALARMING_EVENTS.has(event) || /uncaught|unhandled/i.test(event)) {
      this.#recordAlarm(`${event} ${line.err?.message ?? ''}`)
    }
  }

  #recordAlarm(line: string): void {
    const kept = line.slice(0, LINE_LENGTH_MAX)
    if (this.#alarms.size >= LINES_KEPT_MAX && !this.#alarms.has(kept)) return
    this.#alarms.set(kept, (this.#alarms.get(kept) ?? 0) + 1)
  }
}
