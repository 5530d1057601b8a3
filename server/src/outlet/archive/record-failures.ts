import { hasEventAbout } from '../../ledger/recent-event-store.ts'
import type { CompanyId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import type { AuditEntry, ServiceAudit } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import { getSystemWorkspace } from '../../tenancy/workspace-store.ts'
import type { ArchivedWorkspace } from './archive-store.ts'

type WriteEntry = (companyId: CompanyId, entry: AuditEntry) => Promise<void>

/** Writes one audit entry for each company with workspaces that could not be archived. */
export async function recordFailures(
  failures: readonly ArchivedWorkspace[],
  write: WriteEntry,
  logger: Logger,
): Promise<void> {
  for (const [companyId, workspaces] of Map.groupBy(failures, (workspace) => workspace.companyId)) {
    const metadata = { workspaceIds: workspaces.map(({ workspaceId }) => workspaceId) }
    const resource = { type: 'company', id: companyId }
    try {
      await write(companyId, { action: 'ARCHIVE_FAILED', resource, metadata })
    } catch (error) {
      logger.warn({ event: 'archive.not-audited', companyId, err: error })
    }
  }
}

/** Every node archives every hour. Writes no entry if the company has such an entry in this hour. */
export function oncePerHour(db: Queryable, audit: ServiceAudit, clock: Clock): WriteEntry {
  return async (companyId, entry) =>
    await db.transaction().execute(async (trx) => {
      // Nodes take turns.
      await lockCompany(trx, companyId)
      const workspaceId = await getSystemWorkspace(trx, companyId)
      const about = { workspaceId, action: entry.action, resourceId: companyId }
      if (await hasEventAbout(trx, about, { nowMs: clock(), withinMs: HOUR_MS })) return
      await audit(trx, companyId, [entry])
    })
}
