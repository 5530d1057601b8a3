import { randomUUID } from 'node:crypto'
import type { Logger } from '../logger.ts'
import type { Queryable } from '../pg/database.ts'
import { Loop } from '../scheduling/loop.ts'
import type { MonotonicClock } from '../time/clock.ts'
import { deleteNode, renewNode, type SeenNode } from './node-store.ts'

export const NODE_TIMES = {
  renewMs: 3_000,
  /** A node that has been silent for this long has lost its leases. */
  deadMs: 9_000,
  /** Longer than any lease that a dead node can have. */
  forgetMs: 120_000,
} as const

type NodeTimes = Record<keyof typeof NODE_TIMES, number>

/** A node stops relying on its leases a bit before other nodes can take them over. */
const SAFE_SHARE = 0.9

type NodePresenceOptions = {
  db: Queryable
  role: string
  monotonic: MonotonicClock
  logger: Logger
  times?: NodeTimes
}

/**
 * Tells the other nodes that this one is alive, and finds those that are not. All ages are measured by the
 * database's clock.
 *
 * A node that couldn't renew its own row can't judge others: during an outage, all rows get old. So it
 * reports a node as dead only after it has been connected for as long itself.
 */
export class NodePresence implements AsyncDisposable {
  readonly id = randomUUID()
  readonly #options: NodePresenceOptions
  readonly #times: NodeTimes
  readonly #loop: Loop
  #peers: readonly SeenNode[] = []
  /** When the last renewal that succeeded was sent. */
  #renewedAtMs = Number.NEGATIVE_INFINITY
  /** No renewal has been late since then. */
  #connectedSinceMs = Number.POSITIVE_INFINITY
  #epoch = 0
  #reporting: Promise<void> | null = null
  #onDead: (ids: readonly string[]) => Promise<void> = async () => {}

  constructor(options: NodePresenceOptions) {
    this.#options = options
    this.#times = options.times ?? NODE_TIMES
    const { renewMs: everyMs } = this.#times
    const run = () => this.#renew()
    this.#loop = new Loop({ name: 'node', everyMs, logger: options.logger, run })
  }

  renewNow(): Promise<void> {
    return this.#loop.runNow()
  }

  /** The other nodes with a row, as of the last renewal. */
  get peers(): readonly SeenNode[] {
    return this.#peers
  }

  /** How many running nodes serve requests, including this one. */
  get servingCount(): number {
    const { deadMs } = this.#times
    const serving = this.#peers.filter(
      ({ role, silentMs }) => role !== 'worker' && silentMs < deadMs,
    )
    return 1 + serving.length
  }

  /** False if another node may have taken over what this one had leased. */
  get hasLeases(): boolean {
    return this.#peers.length === 0 || this.#isConnected()
  }

  /**
   * Changes whenever another node may have taken over what this one had leased before. So a node that is connected
   * again doesn't rely on leases of an earlier epoch.
   */
  get leaseEpoch(): number {
    return this.#epoch
  }

  /** Called after every renewal while there are nodes that ended without a shutdown, or are paused. */
  onDead(run: (ids: readonly string[]) => Promise<void>): void {
    this.#onDead = run
  }

  #isConnected(): boolean {
    const { monotonic } = this.#options
    return monotonic() - this.#renewedAtMs < this.#times.deadMs * SAFE_SHARE
  }

  async #renew(): Promise<void> {
    const { db, role, monotonic } = this.#options
    const { deadMs, forgetMs } = this.#times
    // Read before the statement, so that it is never later than the time that the database stores.
    const sentAtMs = monotonic()
    const peers = await renewNode(db, { id: this.id, role, forgetMs })
    const nowMs = monotonic()
    if (!this.#isConnected()) {
      this.#connectedSinceMs = nowMs
      this.#epoch += 1
    }
    this.#renewedAtMs = sentAtMs
    this.#peers = peers
    if (nowMs - this.#connectedSinceMs < deadMs) return
    const dead = peers.filter(({ silentMs }) => silentMs >= deadMs)
    if (dead.length > 0) this.#reporting ??= this.#report(dead.map(({ id }) => id))
  }

  /** The next renewal doesn't wait for it, because a late one makes this node look dead. */
  async #report(ids: readonly string[]): Promise<void> {
    try {
      await this.#onDead(ids)
    } catch (error) {
      this.#options.logger.warn({ event: 'lease.not-taken-over', err: error })
    }
    this.#reporting = null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
    await this.#reporting
    await deleteNode(this.#options.db, this.id).catch(() => {})
  }
}

/** A token for a lease, whose first half says which node has it. */
export function leaseToken(nodeId: string): string {
  return nodeId.slice(0, NODE_PART_LENGTH) + randomUUID().slice(NODE_PART_LENGTH)
}

/** 64 bits, as text. */
export const NODE_PART_LENGTH = 18
