import type { HeadMove } from '../ledger/append-store.ts'
import type { ChainHead } from '../ledger/event.ts'
import type { Clock } from '../platform/time/clock.ts'
import type { WorkspaceId } from '../platform/id.ts'

const WORKSPACES_MAX = 20_000
/** How long a workspace counts as contended after another node moved its head. */
const CONTENDED_MS = 5_000

/**
 * The chain heads as this writer last saw them. The database verifies each one on commit, so a stale head
 * costs a retry and can't corrupt the chain. Owned by one writer; nothing else reads or writes it.
 */
export class HeadCache {
  readonly #heads = new Map<WorkspaceId, ChainHead>()
  readonly #missedAtMs = new Map<WorkspaceId, number>()
  readonly #locked = new Set<WorkspaceId>()
  #lastMissAtMs = Number.NEGATIVE_INFINITY
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(workspaceId: WorkspaceId): ChainHead | undefined {
    return this.#heads.get(workspaceId)
  }

  /**
   * The heads of these workspaces if the moves of the batch in flight succeed, or null if one is unknown,
   * contended or locked.
   */
  expectedOf(
    workspaceIds: readonly WorkspaceId[],
    moves: readonly HeadMove[],
  ): Map<WorkspaceId, ChainHead> | null {
    const moved = new Map(moves.map(({ workspaceId, to }) => [workspaceId, to]))
    const heads = new Map<WorkspaceId, ChainHead>()
    for (const id of workspaceIds) {
      const head = moved.get(id) ?? this.#heads.get(id)
      if (!head || this.isContended(id) || this.isLocked(id)) return null
      heads.set(id, head)
    }
    return heads
  }

  view(): ReadonlyMap<WorkspaceId, ChainHead> {
    return this.#heads
  }

  set(workspaceId: WorkspaceId, head: ChainHead): void {
    // Delete first, so that the map is ordered by last write and the first entry
    // is the least recently written.
    this.#heads.delete(workspaceId)
    this.#heads.set(workspaceId, head)
    if (this.#heads.size <= WORKSPACES_MAX) return
    const [oldest] = this.#heads.keys()
    if (oldest !== undefined) this.#heads.delete(oldest)
  }

  /** Another writer moved the head: discard it, and lock the head before reading it for a while. */
  noteMiss(workspaceId: WorkspaceId): void {
    this.#heads.delete(workspaceId)
    this.#lastMissAtMs = this.#clock()
    this.#missedAtMs.set(workspaceId, this.#lastMissAtMs)
  }

  isContended(workspaceId: WorkspaceId): boolean {
    const missedAtMs = this.#missedAtMs.get(workspaceId)
    if (missedAtMs === undefined) return false
    if (Math.abs(this.#clock() - missedAtMs) < CONTENDED_MS) return true
    this.#missedAtMs.delete(workspaceId)
    return false
  }

  /**
   * A batch timed out waiting for the lock on the head. Until the lock is free,
   * later batches don't wait for it.
   */
  noteLocked(workspaceId: WorkspaceId): void {
    this.#heads.delete(workspaceId)
    this.#locked.add(workspaceId)
  }

  noteFree(workspaceId: WorkspaceId): void {
    this.#locked.delete(workspaceId)
  }

  isLocked(workspaceId: WorkspaceId): boolean {
    return this.#locked.has(workspaceId)
  }

  /** True for a while after any miss, because other nodes are writing to the same workspaces. */
  isCrowded(): boolean {
    return Math.abs(this.#clock() - this.#lastMissAtMs) < CONTENDED_MS
  }

  /** Call this after a commit whose outcome is unknown. */
  forgetAll(): void {
    this.#heads.clear()
  }
}
