import type { CompanyId } from '../../../platform/id.ts'

type DeliveryBudgetLimits = {
  heldMax: number
  heldPerCompanyMax: number
  /** A company without deliveries on the node can add this many even if the node is full. */
  firstHeldMax: number
  heldBytesMax: number
  heldBytesPerCompanyMax: number
  /** The same in bytes, until the node reaches `heldBytesHardMax`. */
  firstHeldBytesMax: number
  heldBytesHardMax: number
}

/** Deliveries and the bytes of their bodies. */
type Usage = { count: number; bytes: number }
type CompanyUsage = { held: Usage; reserved: Usage }

/**
 * Tracks the deliveries in memory on a node by company, and decides how many more can be fetched. Both the
 * count and the bytes have a limit per company, so one company can't use all the room of a node.
 */
export class DeliveryBudget {
  readonly #limits: DeliveryBudgetLimits
  readonly #companies = new Map<CompanyId, CompanyUsage>()
  readonly #held: Usage = { count: 0, bytes: 0 }
  readonly #reserved: Usage = { count: 0, bytes: 0 }

  constructor(limits: DeliveryBudgetLimits) {
    this.#limits = limits
  }

  get count(): number {
    return this.#held.count
  }

  get bytes(): number {
    return this.#held.bytes
  }

  /** How many deliveries with bodies of `bodyBytes` each the company may fetch now. */
  roomFor(companyId: CompanyId, bodyBytes: number): number {
    const { heldMax, heldPerCompanyMax, firstHeldMax } = this.#limits
    const { held, reserved } = this.#companies.get(companyId) ?? noUsage()
    const company = sum(held, reserved)
    const node = sum(this.#held, this.#reserved)
    const isFirst = company.count === 0
    const nodeRoom = heldMax - node.count
    const freeBytes = this.#freeBytes(company, node)
    // A body may exceed the limit of its company. It is then sent alone.
    const bytesRoom = Math.max(Math.floor(freeBytes / bodyBytes), isFirst && freeBytes > 0 ? 1 : 0)
    return Math.max(
      0,
      Math.min(
        heldPerCompanyMax - company.count,
        isFirst ? Math.max(nodeRoom, firstHeldMax) : nodeRoom,
        bytesRoom,
      ),
    )
  }

  /** Reserves room until disposed, so that concurrent fetches can't use the same room. */
  reserve(companyId: CompanyId, usage: Usage): Disposable {
    const { reserved } = this.#usageOf(companyId)
    change([reserved, this.#reserved], usage, 1)
    return {
      [Symbol.dispose]: () => {
        change([reserved, this.#reserved], usage, -1)
        this.#forgetIfIdle(companyId)
      },
    }
  }

  /** Adds fetched deliveries in order while their bytes fit, and returns how many were added. */
  add(companyId: CompanyId, bodies: readonly { length: number }[]): number {
    const company = this.#usageOf(companyId)
    const freeBytes = this.#freeBytes(company.held, this.#held)
    const isFirst = company.held.count === 0 && freeBytes > 0
    const added: Usage = { count: 0, bytes: 0 }
    for (const { length } of bodies) {
      const isOverLimit = added.bytes + length > freeBytes
      if (isOverLimit && !(isFirst && added.count === 0)) break
      added.count += 1
      added.bytes += length
    }
    change([company.held, this.#held], added, 1)
    this.#forgetIfIdle(companyId)
    return added.count
  }

  remove(companyId: CompanyId, body: { length: number }): void {
    const { held } = this.#usageOf(companyId)
    change([held, this.#held], { count: 1, bytes: body.length }, -1)
    this.#forgetIfIdle(companyId)
  }

  #freeBytes(company: Usage, node: Usage): number {
    const limits = this.#limits
    const nodeFree = limits.heldBytesMax - node.bytes
    const firstFree = Math.min(limits.firstHeldBytesMax, limits.heldBytesHardMax - node.bytes)
    return Math.min(
      limits.heldBytesPerCompanyMax - company.bytes,
      company.count === 0 ? Math.max(nodeFree, firstFree) : nodeFree,
    )
  }

  #usageOf(companyId: CompanyId): CompanyUsage {
    const known = this.#companies.get(companyId)
    if (known) return known
    const usage = noUsage()
    this.#companies.set(companyId, usage)
    return usage
  }

  #forgetIfIdle(companyId: CompanyId): void {
    const usage = this.#companies.get(companyId)
    if (usage?.held.count === 0 && usage.reserved.count === 0) this.#companies.delete(companyId)
  }
}

function noUsage(): CompanyUsage {
  return { held: { count: 0, bytes: 0 }, reserved: { count: 0, bytes: 0 } }
}

function sum(one: Usage, other: Usage): Usage {
  return { count: one.count + other.count, bytes: one.bytes + other.bytes }
}

function change(usages: readonly Usage[], { count, bytes }: Usage, sign: 1 | -1): void {
  for (const usage of usages) {
    usage.count += sign * count
    usage.bytes += sign * bytes
  }
}
