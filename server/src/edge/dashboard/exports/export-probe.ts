import { probeFilteredHot } from '../../../outlet/export/probe-filtered.ts'
import type { CompanyId } from '../../../platform/id.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { listCustomerWorkspaces } from '../../../tenancy/workspace-store.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const KEPT_MS = 5_000
const KEPT_MAX = 1_000

type Kept = { atMs: number; reason: Promise<string | null> }
type Company = Pick<Viewer, 'companyId' | 'plan'>

/** Tests whether filtered exports of hot events work, at most once every five seconds per company. */
export class ExportProbe {
  readonly #deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>
  /** Oldest first. */
  readonly #kept = new Map<CompanyId, Kept>()

  constructor(deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>) {
    this.#deps = deps
  }

  /** Returns the reason as a sentence, or null if they work. */
  async reasonAgainst({ companyId, plan }: Company): Promise<string | null> {
    const nowMs = this.#deps.clock()
    const kept = this.#kept.get(companyId)
    if (kept && nowMs - kept.atMs < KEPT_MS) return await kept.reason
    const reason = this.#try({ companyId, plan })
    this.#kept.delete(companyId)
    this.#kept.set(companyId, { atMs: nowMs, reason })
    if (this.#kept.size > KEPT_MAX) this.#dropOldest()
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
      return 'Events could not be read with a filter just now. Try again in a moment.'
    }
  }

  #dropOldest(): void {
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}
