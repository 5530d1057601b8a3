/** How long synchronous work may go on before the event loop turns. */
const SLICE_MS = 5

/**
 * Divides long synchronous work, so that other requests are served in between. A loop asks `isOver`
 * after each step and awaits `next` when it is; work that ends within a slice awaits nothing.
 */
export class TimeSlice {
  #endsAtMs = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endsAtMs
  }

  async next(): Promise<void> {
    await turnOfOurs()
    this.#endsAtMs = performance.now() + SLICE_MS
  }
}

/** Runs work that yields at least every millisecond or so. Its first slice has to wait as well. */
export async function runInSlices<T>(work: Generator<void, T, void>): Promise<T> {
  const slice = new TimeSlice()
  await slice.next()
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (slice.isOver) await slice.next()
  }
}

/** The same work in one piece. */
export function runAtOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/**
 * The event loop is one for the process, and so is this queue: one slice per turn of the loop. If each
 * caller waited for the next turn by itself, a hundred of them would make that turn last half a second.
 */
const waiting: (() => void)[] = []

function turnOfOurs(): Promise<void> {
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
