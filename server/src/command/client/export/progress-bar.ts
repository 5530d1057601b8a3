import { count, megabytes } from '../../output/format.ts'

const EVERY_MS = 100
const CELLS = 24

/** How far a download is. Prints nothing if stderr is not a terminal. */
export class ProgressBar implements Disposable {
  readonly #isShown = process.stderr.isTTY
  readonly #clock: () => number
  readonly #startedAtMs: number
  #shownAtMs = Number.NEGATIVE_INFINITY
  /** An estimate. Null until it is known. */
  #total: number | null = null

  constructor(clock: () => number) {
    this.#clock = clock
    this.#startedAtMs = clock()
  }

  expect(bytes: number): void {
    this.#total = bytes
  }

  show({ bytes, rows }: { bytes: number; rows: number }): void {
    const nowMs = this.#clock()
    if (!this.#isShown || nowMs - this.#shownAtMs < EVERY_MS) return
    this.#shownAtMs = nowMs
    const perSecond = (bytes * 1_000) / Math.max(1, nowMs - this.#startedAtMs)
    const facts = `${count(rows)} rows, ${megabytes(bytes)}, ${megabytes(perSecond)}/s`
    process.stderr.write(`\r\u001B[K${barOf(bytes, this.#total)}${facts}`)
  }

  [Symbol.dispose](): void {
    if (this.#isShown) process.stderr.write('\r\u001B[K')
  }
}

/** An estimate can be too small, so the bar is full only at the end. */
function barOf(bytes: number, total: number | null): string {
  if (total === null || total <= 0) return ''
  const share = Math.min(0.99, bytes / total)
  const full = Math.floor(share * CELLS)
  return `[${'#'.repeat(full)}${'.'.repeat(CELLS - full)}] ${Math.floor(share * 100)}%  `
}
