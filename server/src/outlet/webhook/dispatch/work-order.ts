import type { CompanyId } from '../../../platform/id.ts'
import type { WebhookId } from '../delivery/delivery.ts'

/** Where the next round starts: companies and webhooks after these come first. */
export type WorkCursor = {
  companyId: CompanyId | null
  webhookIds: ReadonlyMap<CompanyId, WebhookId>
}

type Work = { companyId: CompanyId; webhookId: WebhookId }

/**
 * Remembers where the last round ended, so that no webhook starves. Companies are served round-robin,
 * one webhook each, and so are the webhooks of a company: the next round starts after the last webhook
 * that got deliveries. If none got any, it starts after the last one that was served.
 */
export class WorkOrder {
  #companyId: CompanyId | null = null
  readonly #webhookIds = new Map<CompanyId, WebhookId>()
  /** The last webhook of each company that got deliveries in this round. */
  readonly #leasedIds = new Map<CompanyId, WebhookId>()

  get cursor(): WorkCursor {
    return { companyId: this.#companyId, webhookIds: this.#webhookIds }
  }

  noteLeased({ companyId, webhookId }: Work): void {
    this.#leasedIds.set(companyId, webhookId)
  }

  /**
   * With `hasAll`, these are all webhooks with work, so the positions of other companies are dropped. Returns
   * whether any webhook got deliveries.
   */
  endRound(served: readonly Work[], { hasAll }: { hasAll: boolean }): boolean {
    if (hasAll) this.#webhookIds.clear()
    for (const { companyId, webhookId } of served) this.#webhookIds.set(companyId, webhookId)
    for (const [companyId, webhookId] of this.#leasedIds) this.#webhookIds.set(companyId, webhookId)
    this.#companyId = served.at(-1)?.companyId ?? null
    const hasLeased = this.#leasedIds.size > 0
    this.#leasedIds.clear()
    return hasLeased
  }
}
