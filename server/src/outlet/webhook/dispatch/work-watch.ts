import type { WorkspaceId } from '../../../platform/id.ts'
import type { MonotonicClock } from '../../../platform/time/clock.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { findWatched, type WatchPosition } from './watch-store.ts'

type WorkWatchOptions = {
  db: Queryable
  monotonic: MonotonicClock
  /** With more workspaces that have work, all webhooks are searched, which is cheaper then. */
  workspacesMax: number
  /** How often all webhooks are checked, for changes by nodes of a release without groups. */
  checkAllMs: number
  /** How often they are checked while more than `workspacesMax` workspaces have work. */
  recountMs: number
}

/**
 * Tracks the workspaces whose webhooks may have work, at a cost that doesn't grow with the webhooks that are
 * idle: each poll reads only what changed since the last one.
 *
 * A workspace has work because a webhook is behind the chain or has open deliveries. Those that are behind are
 * remembered until a poll finds that they aren't anymore, because a webhook can be paused or wait for room. After an
 * error, or if another server responds, the next poll checks all of them.
 */
export class WorkWatch {
  readonly #options: WorkWatchOptions
  /** Null before the first poll and after an error. */
  #position: WatchPosition | null = null
  #behind: ReadonlySet<WorkspaceId> = new Set()
  #open: ReadonlySet<WorkspaceId> = new Set()
  /** Noted since the last poll started. */
  #noted = new Set<WorkspaceId>()
  #hasMany = false
  #allCheckedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: WorkWatchOptions) {
    this.#options = options
  }

  /** Call it when these chains have grown, so that their webhooks are served before the next poll. */
  note(workspaceIds: Iterable<WorkspaceId>): void {
    for (const workspaceId of workspaceIds) this.#noted.add(workspaceId)
  }

  /** A superset of the workspaces with work, as of the last poll or note. Null if there are many. */
  get workspaceIds(): WorkspaceId[] | null {
    if (this.#hasMany) return null
    const ids = new Set([...this.#behind, ...this.#open, ...this.#noted])
    return ids.size > this.#options.workspacesMax ? null : [...ids]
  }

  async poll(): Promise<void> {
    const { db, monotonic, workspacesMax, checkAllMs, recountMs } = this.#options
    const nowMs = monotonic()
    const everyMs = this.#hasMany ? recountMs : checkAllMs
    const isFull = this.#position === null || nowMs - this.#allCheckedAtMs >= everyMs
    if (this.#hasMany && !isFull) return
    const known = isFull ? [] : [...this.#behind, ...this.#noted]
    const since = isFull ? null : this.#position
    this.#noted = new Set()
    // If the query fails, the next poll checks all.
    this.#position = null
    const found = await findWatched(db, { since, known, limit: workspacesMax + 1 })
    // A server that was promoted can be some transactions behind, and uses their numbers again.
    if (since && found.position.server !== since.server) return await this.poll()
    if (isFull) this.#allCheckedAtMs = nowMs
    this.#position = found.position
    this.#behind = new Set(found.behindIds)
    this.#open = new Set(found.openIds)
    // A list that is full may be incomplete, even if its webhooks are in few workspaces.
    this.#hasMany = [found.behindIds, found.openIds].some(({ length }) => length > workspacesMax)
  }
}
