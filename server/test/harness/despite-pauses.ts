import { test, type TestContext } from 'node:test'

const TRIES_MAX = 4
const TURN_MS = 20
/** A process that has timers but didn't run for this long was paused. */
const PAUSE_MS_MIN = 300

/**
 * A test that is repeated if it fails while the machine pauses this process, for work that must be faster than
 * a timeout of the service or of the test.
 */
export function testDespitePauses(
  name: string,
  work: (t: TestContext) => void | Promise<void>,
): void {
  void test(name, async (t) => {
    for (let tries = 1; ; tries += 1) {
      using pauses = new PauseWatch()
      try {
        return await work(t)
      } catch (error) {
        if (tries === TRIES_MAX || pauses.longestMs < PAUSE_MS_MIN) throw error
      }
    }
  })
}

class PauseWatch implements Disposable {
  #ranAtMs = performance.now()
  #longestMs = 0
  readonly #timer = setInterval(() => this.#note(), TURN_MS).unref()

  /** The longest time between two turns of a timer so far. */
  get longestMs(): number {
    this.#note()
    return this.#longestMs
  }

  #note(): void {
    const nowMs = performance.now()
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#ranAtMs)
    this.#ranAtMs = nowMs
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
