/** How long synchronous work can run before it yields to the event loop. */
const SLICE_MS = 5

/** Whose work a slice is, such as a company's id. The service's own work has one owner in all. */
export type SliceOwner = string
const SERVICE: SliceOwner = ''

/**
 * Splits long synchronous work, so that other requests are served in between. A loop checks `isOver`
 * after each step and awaits `next` if it is true. Work that ends within a slice awaits nothing.
 */
export class TimeSlice {
  readonly #owner: SliceOwner
  #endsAtMs = performance.now() + SLICE_MS

  constructor(owner: SliceOwner = SERVICE) {
    this.#owner = owner
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsAtMs
  }

  async next(): Promise<void> {
    await nextTurn(this.#owner)
    this.#endsAtMs = performance.now() + SLICE_MS
  }
}

/** Runs work that yields about every millisecond or more often. Its first slice waits its turn too. */
export async function runInSlices<T>(
  work: Generator<void, T, void>,
  owner: SliceOwner = SERVICE,
): Promise<T> {
  const slice = new TimeSlice(owner)
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
 * for the next turn on its own, a hundred of them would make that turn last half a second. Owners get
 * their slices in turn, so one that has a hundred requests delays another's by one slice at a time.
 */
const waiting = new Map<SliceOwner, (() => void)[]>()
let isScheduled = false

function nextTurn(owner: SliceOwner): Promise<void> {
  return new Promise((resolve) => {
    const ofOwner = waiting.get(owner)
    if (ofOwner) ofOwner.push(resolve)
    else waiting.set(owner, [resolve])
    if (isScheduled) return
    isScheduled = true
    setImmediate(resumeOne)
  })
}

function resumeOne(): void {
  const [next] = waiting
  isScheduled = false
  if (!next) return
  const [owner, ofOwner] = next
  const resume = ofOwner.shift()
  // The owner goes to the end of the line.
  waiting.delete(owner)
  if (ofOwner.length > 0) waiting.set(owner, ofOwner)
  resume?.()
  if (waiting.size === 0) return
  isScheduled = true
  setImmediate(resumeOne)
}
