import type { WorkspaceId } from '../../../platform/id.ts'

/** How long a run of one workspace should take: others wait for it, and it must not reach the statement timeout. */
const RUN_MS = 2_000
/** A workspace starts with this. Even events with the longest values take less than the statement timeout. */
const EVENTS_FIRST = 5_000
const EVENTS_MIN = 100
const EVENTS_MAX = 50_000
const GROWTH_MAX = 4
const SHRINK_AFTER_FAILURE = 8
/** The ones used least recently are forgotten, and start again. */
const WORKSPACES_MAX = 10_000

/**
 * How many events the next run of a workspace takes. An event with long values that occur only once costs a
 * hundred times as much as an ordinary one, so the size follows the time that the last run took.
 */
export class RunSizes {
  readonly #sizes = new Map<WorkspaceId, number>()

  of(workspaceId: WorkspaceId): number {
    return this.#sizes.get(workspaceId) ?? EVENTS_FIRST
  }

  noteRun(workspaceId: WorkspaceId, { events, tookMs }: { events: number; tookMs: number }): void {
    // A run of a few events says little about a large one.
    if (events < EVENTS_MIN) return
    const fittingMax = (events * RUN_MS) / Math.max(1, tookMs)
    this.#set(workspaceId, Math.min(fittingMax, this.of(workspaceId) * GROWTH_MAX))
  }

  noteFailure(workspaceId: WorkspaceId): void {
    this.#set(workspaceId, this.of(workspaceId) / SHRINK_AFTER_FAILURE)
  }

  #set(workspaceId: WorkspaceId, events: number): void {
    this.#sizes.delete(workspaceId)
    this.#sizes.set(workspaceId, Math.round(Math.min(EVENTS_MAX, Math.max(EVENTS_MIN, events))))
    const [oldest] = this.#sizes.keys()
    if (oldest !== undefined && this.#sizes.size > WORKSPACES_MAX) this.#sizes.delete(oldest)
  }
}
