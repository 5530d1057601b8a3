/** Events on their way, as JSON, in the order in which they were recorded. */
export type RecorderQueue = {
  /** How many events wait, including those that are being sent. */
  readonly length: number
  /** The number of events that are not in a batch yet. */
  readonly untaken: number
  /** False if there is no room. */
  push(line: string): boolean
  /** The next events in order, at most this many with at most this many characters, but at least one. */
  take(limits: { eventsMax: number; charsMax: number }): Promise<readonly string[]>
  /** Forgets the oldest events, which the service has stored or refused. */
  settle(count: number): void
  /** Whether a later process finds what is left. */
  readonly isDurable: boolean
  close(): void
}

/** Keeps a recorder's queue outside of memory. See `diskSpool` of `@annals/sdk/node`. */
export type Spool = {
  /** Called once. The queue contains what an earlier process left. */
  open(options: { eventsInMemoryMax: number; onError: (error: unknown) => void }): RecorderQueue
}

export class MemoryQueue implements RecorderQueue {
  readonly isDurable = false
  readonly #eventsMax: number
  readonly #lines: string[] = []
  #taken = 0

  constructor(eventsMax: number) {
    this.#eventsMax = eventsMax
  }

  get length(): number {
    return this.#lines.length
  }

  get untaken(): number {
    return this.#lines.length - this.#taken
  }

  push(line: string): boolean {
    if (this.#lines.length >= this.#eventsMax) return false
    this.#lines.push(line)
    return true
  }

  async take(limits: { eventsMax: number; charsMax: number }): Promise<readonly string[]> {
    const count = countFitting(this.#lines, this.#taken, limits)
    const lines = this.#lines.slice(this.#taken, this.#taken + count)
    this.#taken += count
    return lines
  }

  settle(count: number): void {
    this.#lines.splice(0, count)
    this.#taken -= count
  }

  close(): void {}
}

/** How many lines from `start` fit into the limits: at least one, if there is one. */
export function countFitting(
  lines: readonly string[],
  start: number,
  { eventsMax, charsMax }: { eventsMax: number; charsMax: number },
): number {
  let chars = 0
  let count = 0
  for (let at = start; at < lines.length && count < eventsMax; at += 1) {
    chars += lines[at]?.length ?? 0
    if (count > 0 && chars > charsMax) break
    count += 1
  }
  return count
}
