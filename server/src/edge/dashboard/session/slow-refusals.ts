import { setTimeout as delay } from 'node:timers/promises'

const HOLD_MS = 1_000
/** In a second: more than people bring about, and next to nothing for a node. */
const AT_ONCE_MAX = 20
/** Some kilobytes each. Whoever has more connections than this is not held back by waiting. */
const RECENT_MAX = 2_000

/**
 * Keeps those who are sent away from coming back at once. A flood sends the next attempt when the last
 * is answered, and to refuse takes as much of the thread that takes events as to take one: a hundred
 * connections that were answered at once made events wait ten times as long. Held for a second, they
 * are a hundred requests a second.
 */
export class SlowRefusals {
  #recent = 0

  async hold(): Promise<void> {
    if (this.#recent >= RECENT_MAX) return
    const isAtOnce = this.#recent < AT_ONCE_MAX
    this.#recent += 1
    const over = this.#count()
    if (!isAtOnce) await over
  }

  async #count(): Promise<void> {
    await delay(HOLD_MS, undefined, { ref: false })
    this.#recent -= 1
  }
}
