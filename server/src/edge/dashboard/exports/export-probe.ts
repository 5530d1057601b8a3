import { probeFilteredHot } from '../../../outlet/export/preflight/probe-filtered.ts'
import type { CompanyId } from '../../../platform/id.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { listCustomerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const CACHE_MS = 5_000
const COMPANIES_MAX = 1_000

type CachedReason = { atMs: number; reason: Promise<string | null> }
type Company = Pick<Viewer, 'companyId' | 'plan'>

/** Tests whether filtered exports of hot events work, at most once every five seconds per company. */
export class ExportProbe {
  readonly #deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>
  /** Oldest first. */
  readonly #cache = new Map<CompanyId, CachedReason>()

  constructor(deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>) {
    this.#deps = deps
  }

  /** Returns a human-readable reason, or null if they work. */
  async reasonAgainst({ companyId, plan }: Company): Promise<string | null> {
    const nowMs = this.#deps.clock()
    const cached = this.#cache.get(companyId)
    if (cached && nowMs - cached.atMs < CACHE_MS) return await cached.reason
    const reason = this.#try({ companyId, plan })
    this.#cache.delete(companyId)
    this.#cache.set(companyId, { atMs: nowMs, reason })
    if (this.#cache.size > COMPANIES_MAX) this.#dropOldest()
    return await reason
  }

  async #try({ companyId, plan }: Company): Promise<string | null> {
    const { db, exports } = this.#deps
    try {
      const [first] = await listCustomerWorkspaces(db, companyId)
      const workspaceIds = first === undefined ? [] : [first]
      await probeFilteredHot(exports, { companyId, plan, workspaceIds })
      return null
    } catch (error) {
      exports.logger.warn({ event: 'export.probe-failed', companyId, err: error })
      return 'Filtered events could not be read. Try again in a moment.'
    }
  }

  #dropOldest(): void {
    const [oldest] = this.#cache.keys()
    if (oldest !== undefined) this.#cache.delete(oldest)
  }
}
