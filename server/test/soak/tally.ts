/** Counts the outcomes of each activity. */
export class Tally {
  readonly #counts = new Map<string, Map<string, number>>()
  readonly #slowestMs = new Map<string, number>()

  count(activity: string, outcome: string, by = 1): void {
    const outcomes = this.#counts.get(activity) ?? new Map<string, number>()
    this.#counts.set(activity, outcomes)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + by)
  }

  time(activity: string, durationMs: number): void {
    this.#slowestMs.set(activity, Math.max(durationMs, this.slowestMs(activity)))
  }

  slowestMs(activity: string): number {
    return this.#slowestMs.get(activity) ?? 0
  }

  of(activity: string, outcome: string): number {
    return this.#counts.get(activity)?.get(outcome) ?? 0
  }

  toJSON(): Record<string, Record<string, number>> {
    return Object.fromEntries(
      [...this.#counts].map(([activity, outcomes]) => [activity, Object.fromEntries(outcomes)]),
    )
  }
}
