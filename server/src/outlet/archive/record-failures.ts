import { hasEventAbout } from '../../ledger/recent-event-store.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import type { ServiceAudit } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import { getSystemWorkspace } from '../../tenancy/workspace/workspace-store.ts'
import type { ArchivedWorkspace } from './archive-store.ts'

/**
 * Writes an audit entry for each company with workspaces that could not be archived. Every node archives
 * every hour, and an operator can repeat the command, so each company gets at most one entry per hour.
 */
export async function recordFailures(
  failures: readonly ArchivedWorkspace[],
  {
    db,
    audit,
    clock,
    logger,
  }: {
    /** Must use the serving role, which can append events. */
    db: Queryable
    audit: ServiceAudit
    clock: Clock
    logger: Logger
  },
): Promise<void> {
  for (const [companyId, workspaces] of Map.groupBy(failures, (workspace) => workspace.companyId)) {
    const action = 'ARCHIVE_FAILED'
    const metadata = { workspaceIds: workspaces.map(({ workspaceId }) => workspaceId) }
    const resource = { type: 'company', id: companyId }
    try {
      await db.transaction().execute(async (trx) => {
        // So that only one node at a time looks for an entry and writes one.
        await lockCompany(trx, companyId)
        const workspaceId = await getSystemWorkspace(trx, companyId)
        const about = { workspaceId, action, resourceId: companyId }
        if (await hasEventAbout(trx, about, { nowMs: clock(), withinMs: HOUR_MS })) return
        await audit(trx, companyId, [{ action, resource, metadata }])
      })
    } catch (error) {
      logger.warn({ event: 'archive.not-audited', companyId, err: error })
    }
  }
}
