import type { MonotonicClock } from '../platform/clock.ts'
import type { ProjectId, WorkspaceId } from '../platform/id.ts'

const KNOWN_MS = 60_000
const PROJECTS_MAX = 10_000

/** Projects that were found lately. An unknown one is asked for each time, so a new one works at once. */
export class ProjectCache {
  readonly #foundAtMs = new Map<string, number>()
  readonly #find: (workspaceId: WorkspaceId, projectId: ProjectId) => Promise<boolean>
  readonly #clock: MonotonicClock

  constructor(
    find: (workspaceId: WorkspaceId, projectId: ProjectId) => Promise<boolean>,
    clock: MonotonicClock,
  ) {
    this.#find = find
    this.#clock = clock
  }

  async has(workspaceId: WorkspaceId, projectId: ProjectId): Promise<boolean> {
    const name = `${workspaceId}/${projectId}`
    const foundAtMs = this.#foundAtMs.get(name)
    if (foundAtMs !== undefined && this.#clock() - foundAtMs < KNOWN_MS) return true
    this.#foundAtMs.delete(name)
    if (!(await this.#find(workspaceId, projectId))) return false
    if (this.#foundAtMs.size >= PROJECTS_MAX) this.#foundAtMs.clear()
    this.#foundAtMs.set(name, this.#clock())
    return true
  }
}
