import { monotonicClock as clock } from '../../platform/time/clock.ts'
import { count } from './format.ts'

const EVERY_MS = 200

/** One line on the terminal that shows the progress of a command. Prints nothing if stderr is not a terminal. */
export class ProgressLine implements Disposable {
  readonly #isShown = process.stderr.isTTY
  #shownAtMs = Number.NEGATIVE_INFINITY
  #step = ''

  show(step: string, done: number, total: number): void {
    const isNew = step !== this.#step
    if (!this.#isShown || (!isNew && clock() - this.#shownAtMs < EVERY_MS)) return
    this.#shownAtMs = clock()
    this.#step = step
    const percent = total === 0 ? 100 : Math.floor((100 * done) / total)
    process.stderr.write(`\r\u001B[K${step}: ${percent}% (${count(done)} of ${count(total)})`)
  }

  /** Before something else is printed. The next call shows the line again. */
  hide(): void {
    if (this.#step !== '') process.stderr.write('\r\u001B[K')
    this.#step = ''
  }

  [Symbol.dispose](): void {
    this.hide()
  }
}
