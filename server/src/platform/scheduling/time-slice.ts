import { SliceQueue } from './slice-queue.ts'
import { SERVICE, type SliceOwner, type ThreadShare } from './thread-share.ts'

export type { SliceOwner }

/** How long synchronous work can run before it yields to the event loop. */
const SLICE_MS = 5

/** All work of this process shares one thread. */
const queue = new SliceQueue()

/** Call this for every request, so that the large work of other companies leaves time for it. */
export function noteActivity(owner: SliceOwner): void {
  queue.noteActivity(owner)
}

/** Whether a company other than this one has sent a request within the last second. */
export function isContended(owner: SliceOwner): boolean {
  return queue.isContended(owner)
}

/** Charges work that ran outside of slices, such as decoding rows, to the owner. */
export function chargeCpu(owner: SliceOwner, cpuMs: number): void {
  queue.share.charge(owner, { cpuMs, wallMs: cpuMs })
}

/** How much of the thread each company has recently used for its requests. */
export const requestShare: Pick<ThreadShare, 'pauseMs' | 'isOver' | 'usedMs'> = queue.share

/**
 * Splits long synchronous work, so that other requests are served in between. A loop checks `isOver`
 * after each step and awaits `next` if it is true. Work that ends within a slice awaits nothing.
 */
export class TimeSlice {
  readonly #owner: SliceOwner
  #startedAtMs = performance.now()
  /** The length of the slices before the current one. */
  #pastMs = 0

  constructor(owner: SliceOwner = SERVICE) {
    this.#owner = owner
  }

  get isOver(): boolean {
    return performance.now() >= this.#startedAtMs + SLICE_MS
  }

  /** How long all slices together have lasted, without the time between them. */
  get usedMs(): number {
    return this.#pastMs + performance.now() - this.#startedAtMs
  }

  /** Rejects with the signal's reason if it is aborted first. */
  async next(signal?: AbortSignal): Promise<void> {
    this.#pastMs = this.usedMs
    await queue.next(this.#owner, signal)
    this.#startedAtMs = performance.now()
  }

  /** Runs work that yields about every millisecond or more often. */
  async run<T>(work: Generator<void, T, void>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      const step = work.next()
      if (step.done === true) return step.value
      if (this.isOver) await this.next(signal)
    }
  }
}

/** Runs such work from the start in slices of its own. */
export async function runInSlices<T>(
  work: Generator<void, T, void>,
  owner: SliceOwner = SERVICE,
): Promise<T> {
  const slice = new TimeSlice(owner)
  await slice.next()
  return await slice.run(work)
}

/** Converts the rows of a long list after the turn of the event loop that has decoded them. */
export async function mapInSlices<From, To>(
  items: readonly From[],
  convert: (item: From) => To,
  owner: SliceOwner = SERVICE,
): Promise<To[]> {
  const slice = new TimeSlice(owner)
  const converted: To[] = []
  if (items.length > 1) await slice.next()
  for (const item of items) {
    converted.push(convert(item))
    if (slice.isOver) await slice.next()
  }
  return converted
}

/** Runs work of a few milliseconds, immediately if this turn of the event loop has time for it. */
export function runShort<T>(owner: SliceOwner, work: () => T): T | Promise<Awaited<T>> {
  return queue.runShort(owner, work)
}

/** Runs the same work synchronously. */
export function runAtOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
