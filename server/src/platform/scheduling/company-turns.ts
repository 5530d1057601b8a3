import type { CompanyId } from '../id.ts'

/**
 * Lets companies take turns in a queue that all of them share, so that the work of one that has much of it doesn't
 * delay that of the others. Each worker has its own turns.
 */
export class CompanyTurns {
  readonly #served = new Set<CompanyId>()

  /** `claim` gets the companies that have had their turn. When no other has work, all of them get another. */
  async next<T>(
    claim: (except: readonly CompanyId[]) => Promise<T | null>,
    companyOf: (claimed: T) => CompanyId,
  ): Promise<T | null> {
    let claimed = await claim([...this.#served])
    if (claimed === null && this.#served.size > 0) {
      this.#served.clear()
      claimed = await claim([])
    }
    if (claimed !== null) this.#served.add(companyOf(claimed))
    return claimed
  }
}
