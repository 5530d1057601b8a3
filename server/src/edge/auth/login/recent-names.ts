/** The names that were added last, up to a limit. */
export class RecentNames {
  readonly #max: number
  /** The least recent is first. */
  readonly #names = new Set<string>()

  constructor({ max }: { max: number }) {
    this.#max = max
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  add(name: string): void {
    this.#names.delete(name)
    this.#names.add(name)
    if (this.#names.size <= this.#max) return
    const [oldest] = this.#names
    if (oldest !== undefined) this.#names.delete(oldest)
  }
}
