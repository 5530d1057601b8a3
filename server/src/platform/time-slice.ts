/** How long synchronous work can run before it yields to the event loop. */
const SLICE_MS = 5

/**
 * Splits long synchronous work, so that other requests are served in between. A loop checks `isOver`
 * after each step and awaits `next` if it is true. Work that ends within a slice awaits nothing.
 */
export class TimeSlice {
  #endsAtMs = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endsAtMs
  }

  async next(): Promise<void> {
    await nextTurn()
    this.#endsAtMs = performance.now() + SLICE_MS
  }
}

/** Runs work that yields about every millisecond or more often. Its first slice waits its turn too. */
export async function runInSlices<T>(work: Generator<void, T, void>): Promise<T> {
  const slice = new TimeSlice()
  await slice.next()
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (slice.isOver) await slice.next()
  }
}

/** Runs the same work synchronously. */
export function runAtOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/**
 * All callers share one queue, which runs one slice per turn of the event loop. If each caller waited
 * for the next turn on its own, a hundred of them would make that turn last half a second.
 */
const waiting: (() => void)[] = []

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(resumeOne)
  })
}

function resumeOne(): void {
  waiting[0]?.()
  waiting.shift()
  if (waiting.length > 0) setImmediate(resumeOne)
}
