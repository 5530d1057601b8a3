import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

const FATAL = 60
const ERROR = 50
const LINES_KEPT_MAX = 20
const LINE_LENGTH_MAX = 500
/** Only a mistake in the service causes these, whatever is done to it from outside. */
const ALARMING_EVENTS = new Set(['request.failed', 'process.uncaught', 'service.killed'])

type Line = { level: number; event?: string; err?: { message?: string } }

/** The lines of one or more service processes: counted by name, and the alarming ones kept. */
export class ServiceLog {
  readonly #alarms = new Map<string, number>()
  readonly #errors = new Map<string, number>()
  readonly #copy: number | null

  /** With a file all lines go there as well, to look into a failure. */
  constructor(file: string | null) {
    this.#copy = file === null ? null : openSync(file, 'a')
  }

  /** What must never be in the log; the same line again is counted. */
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
    createInterface({ input: stderr }).on('line', (line) => this.#alarm(`stderr: ${line}`))
  }

  #read(text: string): void {
    // Other lines are for people, and a killed process may cut its last one.
    if (!text.startsWith('{') || !text.endsWith('}')) return
    const line: Line = JSON.parse(text)
    const { level, event = 'unnamed' } = line
    if (level >= ERROR) this.#errors.set(event, (this.#errors.get(event) ?? 0) + 1)
    if (level >= FATAL || ALARMING_EVENTS.has(event) || /uncaught|unhandled/i.test(event)) {
      this.#alarm(`${event} ${line.err?.message ?? ''}`)
    }
  }

  #alarm(line: string): void {
    const kept = line.slice(0, LINE_LENGTH_MAX)
    if (this.#alarms.size >= LINES_KEPT_MAX && !this.#alarms.has(kept)) return
    this.#alarms.set(kept, (this.#alarms.get(kept) ?? 0) + 1)
  }
}
