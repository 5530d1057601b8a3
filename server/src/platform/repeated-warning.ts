/**
 * The part of a logger that is needed here, because the loggers of requests and of the service have
 * different types.
 */
type WarningLogger = { warn: (fields: Record<string, unknown>) => void }

const EVERY_MS = 1_000

/**
 * Logs a warning that one cause can repeat many times per second: the first one in full, and
 * those of the next second as one line with their number. Otherwise every request would log
 * a stack trace during an outage.
 */
export class RepeatedWarning {
  readonly #event: string
  readonly #everyMs: number
  #count = 0
  #timer: NodeJS.Timeout | null = null

  constructor(event: string, everyMs = EVERY_MS) {
    this.#event = event
    this.#everyMs = everyMs
  }

  warn(log: WarningLogger, fields: Record<string, unknown>): void {
    if (this.#timer) {
      this.#count += 1
      return
    }
    log.warn({ event: this.#event, ...fields })
    this.#timer = setTimeout(() => this.#summarize(log), this.#everyMs)
    this.#timer.unref()
  }

  #summarize(log: WarningLogger): void {
    this.#timer = null
    if (this.#count > 0) log.warn({ event: this.#event, count: this.#count })
    this.#count = 0
  }
}
