import type { MonotonicClock } from '../../platform/time/clock.ts'
import type { CompanyId, ProjectId, WorkspaceId } from '../../platform/id.ts'

const FRESH_MS = 60_000
const WORKSPACES_MAX = 5_000

type WorkspaceRef = { companyId: CompanyId; workspaceId: WorkspaceId }
type ProjectIds = ReadonlySet<ProjectId>

type ProjectCacheOptions = {
  /** Returns all projects of the workspace, at most 100. */
  list: (workspaceId: WorkspaceId) => Promise<ProjectId[]>
  /** Limits the concurrent reads of each company. */
  takeSlot: (companyId: CompanyId) => Promise<Disposable>
  clock: MonotonicClock
}

/**
 * Caches the projects of each workspace. If an id is unknown, the cache reads the list again, so a new
 * project works at once. All callers that send unknown ids share the read that is waiting for a slot.
 */
export class ProjectCache {
  readonly #lists = new Map<WorkspaceId, { ids: ProjectIds; readAtMs: number }>()
  /** Reads that have no slot yet. */
  readonly #waiting = new Map<WorkspaceId, Promise<ProjectIds>>()
  readonly #list: ProjectCacheOptions['list']
  readonly #takeSlot: ProjectCacheOptions['takeSlot']
  readonly #clock: MonotonicClock

  constructor({ list, takeSlot, clock }: ProjectCacheOptions) {
    this.#list = list
    this.#takeSlot = takeSlot
    this.#clock = clock
  }

  /** Returns the ids that are not projects of the workspace. */
  async listUnknown(workspace: WorkspaceRef, ids: ProjectIds): Promise<ProjectIds> {
    const known = this.#lists.get(workspace.workspaceId)
    const isFresh = known !== undefined && this.#clock() - known.readAtMs < FRESH_MS
    if (isFresh && ids.isSubsetOf(known.ids)) return new Set()
    return ids.difference(await this.#joinRead(workspace))
  }

  #joinRead(workspace: WorkspaceRef): Promise<ProjectIds> {
    const waiting = this.#waiting.get(workspace.workspaceId)
    if (waiting) return waiting
    const reading = this.#read(workspace)
    this.#waiting.set(workspace.workspaceId, reading)
    return reading
  }

  async #read({ companyId, workspaceId }: WorkspaceRef): Promise<ProjectIds> {
    // Once the query runs, it can miss a project created after that, so later callers must not join it.
    const close = () => this.#waiting.delete(workspaceId)
    using _slot = await this.#takeSlot(companyId).finally(close)
    const ids = new Set(await this.#list(workspaceId))
    if (this.#lists.size >= WORKSPACES_MAX) this.#lists.clear()
    this.#lists.set(workspaceId, { ids, readAtMs: this.#clock() })
    return ids
  }
}
