import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../../platform/time/clock.ts'
import type { CompanyId } from '../../../platform/id.ts'
import { isContended } from '../../../platform/scheduling/time-slice.ts'
import type { ReadyDelivery } from './attempt.ts'
import type { WebhookId } from '../delivery/delivery.ts'
import type { Lease, LeaseRoom, WebhookWork } from './delivery-queue-store.ts'
import { type DispatchLimits, idleFanOutMs } from './dispatch-limits.ts'
import { DeliveryBudget } from './delivery-budget.ts'
import { Lane } from './lane.ts'
import { targetAt } from '../secret/rotation.ts'
import { type Pacing, SendPacer } from './send-pacer.ts'
import type { Target } from '../webhook.ts'

/** A delivery that this node has leased, until its attempt has ended or its lease is released. */
export type Held = ReadyDelivery & {
  work: WebhookWork
  lease: Lease
  readyAtMs: number
  lane: Lane<Held>
}

/** What this node knows about a webhook that it serves. */
export type Hold = {
  lane: Lane<Held>
  companyId: CompanyId
  /** All deliveries that are ready were claimed with it. */
  target: Target
  usedAtMs: number
  fannedOutAtMs: number
  /** The largest body of the last fetch: an estimate for the next one. */
  bodyBytes: number
}

type HoldTableOptions = {
  limits: DispatchLimits
  clock: Clock
  random: () => number
  pacing?: Pacing | undefined
  send: (delivery: Held) => void
}

/** The estimate before the first fetch of a webhook: the size of a typical event. */
const BODY_BYTES = 1_024

/**
 * The deliveries that this node holds, by webhook. A held delivery is ready in its webhook's lane, waits in
 * the pacer, or is being sent. The methods that take deliveries out don't release their leases.
 */
export class HoldTable {
  readonly #options: HoldTableOptions
  readonly #holds = new Map<WebhookId, Hold>()
  readonly #budget: DeliveryBudget
  readonly #pacer: SendPacer<Held>

  constructor(options: HoldTableOptions) {
    this.#options = options
    this.#budget = new DeliveryBudget(options.limits)
    this.#pacer = new SendPacer({ send: options.send, ...(options.pacing ?? { isContended }) })
  }

  get count(): number {
    return this.#budget.count
  }

  get bytes(): number {
    return this.#budget.bytes
  }

  /** The webhooks that have deliveries here. */
  get busyWebhookIds(): WebhookId[] {
    return [...this.#holds]
      .filter(([, { lane }]) => lane.heldCount > 0)
      .map(([webhookId]) => webhookId)
  }

  holdOf(work: WebhookWork): Hold {
    const { limits, clock, random } = this.#options
    const { webhookId, companyId } = work
    const known = this.#holds.get(webhookId)
    const usedAtMs = clock()
    if (known) return Object.assign(known, { usedAtMs })
    const lane = new Lane<Held>((delivery) => this.#pacer.add(companyId, delivery))
    // Randomized, so that many webhooks don't all create deliveries at once.
    const fannedOutAtMs = usedAtMs - random() * idleFanOutMs(limits, work)
    const target = targetAt(work, usedAtMs)
    const hold = { lane, companyId, target, usedAtMs, fannedOutAtMs, bodyBytes: BODY_BYTES }
    this.#holds.set(webhookId, hold)
    return hold
  }

  /** The minimum of the room that the receiver, its company and this node have. */
  roomFor({ lane, companyId, bodyBytes }: Hold): LeaseRoom {
    const count = Math.min(lane.room(), this.#budget.roomFor(companyId, bodyBytes))
    return { count, bytes: count * bodyBytes }
  }

  reserve({ companyId }: Hold, room: LeaseRoom): Disposable {
    return this.#budget.reserve(companyId, room)
  }

  /** Runs work on the webhook's deliveries that can't wait for the pacer. */
  charge<T>({ companyId }: Pick<Hold, 'companyId'>, work: () => T): T {
    return this.#pacer.charge(companyId, work)
  }

  /**
   * Adds deliveries that were claimed with a target. Returns those to release: those with another target,
   * and the last ones if they exceed the room in bytes.
   */
  add(webhookId: WebhookId, hold: Hold, target: Target, ready: readonly Held[]): Held[] {
    const outdated = isDeepStrictEqual(target, hold.target) ? [] : this.takeReady(webhookId)
    hold.target = target
    const bodies = ready.map(({ body }) => body)
    hold.bodyBytes = Math.max(1, ...bodies.map(({ length }) => length))
    const count = this.#budget.add(hold.companyId, bodies)
    hold.lane.add(ready.slice(0, count))
    return [...outdated, ...ready.slice(count)]
  }

  /** Call it when an attempt has ended. Returns whether the webhook has room for more deliveries. */
  noteEnd({ work, body, lane }: Held, end: { isGood: boolean; durationMs: number }): boolean {
    this.#budget.remove(work.companyId, body)
    lane.noteEnd(end)
    return lane.room() > 0
  }

  /**
   * A receiver that is being probed gets one delivery at a time, with pauses, so the ready ones are taken out.
   */
  noteFailureCount(webhookId: WebhookId, failureCount: number): Held[] {
    const lane = this.#holds.get(webhookId)?.lane
    lane?.noteFailureCount(failureCount)
    return lane?.isProbing ? this.takeReady(webhookId) : []
  }

  /** Takes out the ready deliveries of those of these webhooks whose target has changed, or that have none. */
  takeOutdated(webhookIds: readonly WebhookId[], targets: ReadonlyMap<string, Target>): Held[] {
    const nowMs = this.#options.clock()
    const outdated = webhookIds.filter((webhookId) => {
      const target = targets.get(webhookId)
      const known = this.#holds.get(webhookId)?.target
      return !target || !isDeepStrictEqual(targetAt(target, nowMs), known)
    })
    return outdated.flatMap((webhookId) => this.takeReady(webhookId))
  }

  takeReady(webhookId: WebhookId): Held[] {
    const hold = this.#holds.get(webhookId)
    if (!hold) return []
    const { lane, companyId } = hold
    const paced = this.#pacer.take(companyId, (delivery) => delivery.lane === lane)
    const ready = [...paced, ...lane.takeReady(paced.length)]
    for (const { body } of ready) this.#budget.remove(companyId, body)
    return ready
  }

  takeAll(): Held[] {
    const ready = [...this.#holds.values()].flatMap(({ lane }) => lane.takeReady())
    return [...ready, ...this.#pacer.takeAll()]
  }

  forgetIdle(): void {
    const idleBeforeMs = this.#options.clock() - this.#options.limits.leaseMs
    for (const [webhookId, { lane, usedAtMs }] of this.#holds) {
      if (lane.heldCount === 0 && usedAtMs < idleBeforeMs) this.#holds.delete(webhookId)
    }
  }
}
