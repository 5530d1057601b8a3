import { ApiError } from '../../errors.ts'

/** An account or a network with waiting callers. */
type Owner = {
  name: string
  waiting: number
  /** Owners with lower positions are served first. Each hash moves its owners to the end. */
  position: number
}

type Waiting = {
  owners: readonly Owner[]
  isKnown: boolean
  begin: () => void
  refuse: () => void
}

/**
 * Limits how many password hashes run at once. Each uses a CPU core for 32 ms and 19 MiB of memory, so a
 * flood of logins waits here and does not slow down ingest. While callers wait, the queue pauses after
 * each hash for as long as the hash took, so a flood gets at most half a core.
 *
 * Each caller has several owners: its account and its networks. Owners are served round-robin, so a caller
 * waits for about one hash per account or per network that has callers here, whichever is fewer. A full
 * queue rejects the newest caller of the owner with the most callers, so a flood rejects itself. On a
 * tie, it rejects unknown callers first.
 *
 * `FairSemaphore` can't do this: with one permit it is first in, first out, and each of its callers has
 * only one owner.
 */
export class HashingQueue {
  readonly #runningMax: number
  readonly #waitingMax: number
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>()
  readonly #owners = new Map<string, Owner>()
  #running = 0
  #lastPosition = 0

  constructor({ runningMax, waitingMax }: { runningMax: number; waitingMax: number }) {
    this.#runningMax = runningMax
    this.#waitingMax = waitingMax
  }

  /** `owners` are sorted from largest to smallest. Names must differ between accounts and networks. */
  async run<T>(
    owners: readonly string[],
    work: () => Promise<T>,
    { isKnown = false } = {},
  ): Promise<T> {
    await this.#enter(owners, isKnown)
    const startedAtMs = performance.now()
    try {
      return await work()
    } finally {
      this.#leave(performance.now() - startedAtMs)
    }
  }

  async #enter(names: readonly string[], isKnown: boolean): Promise<void> {
    if (this.#running < this.#runningMax) {
      this.#running += 1
      return
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const owners = names.map((name) => this.#ownerOf(name))
    for (const owner of owners) owner.waiting += 1
    const refuse = () => reject(new ApiError('overloaded'))
    this.#waiting.add({ owners, isKnown, begin: resolve, refuse })
    if (this.#waiting.size > this.#waitingMax) this.#refuseOne()
    await promise
  }

  #ownerOf(name: string): Owner {
    const known = this.#owners.get(name)
    if (known) return known
    const owner = { name, waiting: 0, position: (this.#lastPosition += 1) }
    this.#owners.set(name, owner)
    return owner
  }

  #refuseOne(): void {
    let refused: Waiting | null = null
    for (const waiting of this.#waiting) {
      if (!refused || isRefusedBefore(waiting, refused)) refused = waiting
    }
    if (!refused) return
    this.#remove(refused)
    refused.refuse()
  }

  #leave(workedMs: number): void {
    if (this.#waiting.size === 0) this.#running -= 1
    else setTimeout(() => this.#beginNext(), workedMs)
  }

  /** Leaves `#running` unchanged, so that new callers can't overtake the next one. */
  #beginNext(): void {
    let next: Waiting | null = null
    for (const waiting of this.#waiting) {
      if (!next || compareOwnerValues(waiting, next, (owner) => owner.position) < 0) next = waiting
    }
    if (!next) {
      this.#running -= 1
      return
    }
    this.#lastPosition += 1
    for (const owner of next.owners) owner.position = this.#lastPosition
    this.#remove(next)
    next.begin()
  }

  #remove(waiting: Waiting): void {
    this.#waiting.delete(waiting)
    for (const owner of waiting.owners) {
      owner.waiting -= 1
      if (owner.waiting === 0) this.#owners.delete(owner.name)
    }
  }
}

/** `newer` arrived after `older`. */
function isRefusedBefore(newer: Waiting, older: Waiting): boolean {
  const more = compareOwnerValues(newer, older, (owner) => owner.waiting)
  return more > 0 || (more === 0 && (older.isKnown || !newer.isKnown))
}

/** Compares the highest value among the owners, then each owner's value, largest owner first. */
function compareOwnerValues(a: Waiting, b: Waiting, valueOf: (owner: Owner) => number): number {
  const [first, second] = [a.owners.map(valueOf), b.owners.map(valueOf)]
  const highest = Math.max(0, ...first) - Math.max(0, ...second)
  const differences = first.map((value, index) => value - (second[index] ?? 0))
  return [highest, ...differences].find((difference) => difference !== 0) ?? 0
}
